/**
 * The result of `work`, or `late` if it takes longer than `ms` milliseconds. The work itself goes on, and its later result
 * or error is dropped.
 *
 * @throws what the work throws in time
 */
export async function withTimeout<T, L>(ms: number, work: Promise<T>, late: L): Promise<T | L> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<L>((resolve) => {
    timer = setTimeout(() => resolve(late), ms);
  });
  return Promise.race([work, over]).finally(() => clearTimeout(timer));
}
