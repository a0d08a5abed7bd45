/**
 * Returns the result of `work`, or `late` if it takes longer than `ms` milliseconds. The work itself continues, and its later
 * result or error is dropped.
 *
 * @throws errors of the work within that time
 */
export async function withTimeout<T, L>(ms: number, work: Promise<T>, late: L): Promise<T | L> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<L>((resolve) => {
    timer = setTimeout(() => resolve(late), ms);
  });
  return Promise.race([work, over]).finally(() => clearTimeout(timer));
}
