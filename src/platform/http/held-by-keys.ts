import { Injectable } from '@nestjs/common';

/** Streams and tunnels that are open in this process, by the key that opened them: they end with it. */
@Injectable()
export class HeldByKeys {
  private readonly ends = new Map<string, Set<() => void>>();

  /** Keys that hold something open. */
  get keyIds(): string[] {
    return [...this.ends.keys()];
  }

  /**
   * @param end called when the key was revoked or has expired
   * @returns function to call when the thing has ended
   */
  add(keyId: string, end: () => void): () => void {
    const ends = this.ends.get(keyId) ?? new Set();
    this.ends.set(keyId, ends.add(end));
    return () => {
      if (ends.delete(end) && ends.size === 0) this.ends.delete(keyId);
    };
  }

  /** Ends everything that a key holds. */
  end(keyId: string): void {
    for (const end of [...(this.ends.get(keyId) ?? [])]) end();
  }
}
