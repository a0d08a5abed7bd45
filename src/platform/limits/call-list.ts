/**
 * Running calls, in no particular order. A list with linear search, since only rare events search it: a Map or Set is
 * rehashed regularly under constant inserts and deletes, and its old tables keep the calls in them reachable until the
 * next full garbage collection.
 */
export class CallList<T> {
  private readonly entries: { call: T; at: number }[] = [];

  /** @returns function to call once when the call has ended */
  add(call: T): () => void {
    const entry = { call, at: this.entries.length };
    this.entries.push(entry);
    return () => {
      const last = this.entries.pop();
      if (!last || last === entry) return;
      last.at = entry.at;
      this.entries[entry.at] = last;
    };
  }

  filter(matches: (call: T) => boolean): T[] {
    return this.entries.map(({ call }) => call).filter(matches);
  }
}
