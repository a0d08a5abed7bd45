/**
 * What `work` comes to, or `late` when that takes longer than `ms`. The work is not ended by that: it goes on, and nobody
 * hears how it ends.
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
