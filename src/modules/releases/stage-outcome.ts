import type { EntityManager } from 'typeorm';
import type { QueryDeepPartialEntity } from 'typeorm/query-builder/QueryPartialEntity.js';
import type { ReleaseLease } from './release-lease.js';
import type { LogLine } from './release-log.entity.js';
import type { ReleaseStatus, Stage } from './release-state.js';
import type { Release } from './release.entity.js';

/** What came of a stage, written in one transaction. Without a status in `change` the next stage is due. */
export interface StageOutcome {
  change?: QueryDeepPartialEntity<Release> & { status?: ReleaseStatus };
  lines?: LogLine[];
  /** What is written elsewhere, in the same transaction. */
  inTransaction?: (tx: EntityManager) => Promise<void>;
  /** What others are told once it is written. */
  onCommitted?: () => void;
}

/**
 * One step of the pipeline. It may run again after a crash, so it changes nothing but through its outcome; the icon of the
 * metadata stage is the exception, since adopting it twice is the same as once.
 */
export interface ReleaseStage {
  run(release: Release, lease: ReleaseLease): Promise<StageOutcome>;
}

/** Ends a release: the message says what happened and what to do. */
export function failed(status: 'FAILURE' | 'FAILURE_SCAN', stage: Stage, message: string): StageOutcome {
  return { change: { status }, lines: [{ stage, level: 'error', message }] };
}
