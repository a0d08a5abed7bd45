/** Works in order, on `atOnce` items at a time. @throws the first error of `work`; items in progress continue */
export async function someAtOnce<T>(
  atOnce: number,
  items: IterableIterator<T>,
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  const worker = async () => {
    for (const item of items) await work(item);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}
