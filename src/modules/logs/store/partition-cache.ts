import { Injectable } from '@nestjs/common';
import { DAY_MS, dayOf } from './invocation-days.js';
import { PartitionsRepository } from './partitions.repository.js';
import type { IndexedRange } from './search-ranges.js';

/** Cache lifetime. Partitions are dropped once a day, and an unknown search index only makes a search slower. */
const AGE_MS_MAX = 10_000;

/** Caches which days and search indexes exist, for searches. */
@Injectable()
export class PartitionCache {
  private readonly oldestPartition = cached(() => this.partitions.oldestDay());
  private readonly indexes = cached(() => this.partitions.searchIndexes());

  constructor(private readonly partitions: PartitionsRepository) {}

  /** The oldest day that may have invocations: records sent for up to a day back create its table. */
  async oldestDay(): Promise<string> {
    const yesterday = dayOf(Date.now() - DAY_MS);
    const oldest = await this.oldestPartition();
    return oldest !== null && oldest < yesterday ? oldest : yesterday;
  }

  /** The ranges that have a usable search index. */
  async indexedRanges(): Promise<IndexedRange[]> {
    return (await this.indexes()).filter(({ isValid }) => isValid);
  }
}

/** Shares one read for 10 s. A failed read is not cached. */
function cached<T>(read: () => Promise<T>): () => Promise<T> {
  let known: Promise<T> | null = null;
  let readAt = -Infinity;
  return async () => {
    if (!known || performance.now() - readAt > AGE_MS_MAX) {
      readAt = performance.now();
      known = read();
    }
    try {
      return await known;
    } catch (error) {
      known = null;
      throw error;
    }
  };
}
