import type { EntityManager } from 'typeorm';
import type { QueryDeepPartialEntity } from 'typeorm/query-builder/QueryPartialEntity.js';
import type { ReleaseLease } from './release-lease.js';
import type { LogLine } from './release-log.entity.js';
import type { ReleaseStatus, Stage } from './release-state.js';
import type { Release } from './release.entity.js';

/** The result of a stage, written in one transaction. Without a status in `change` the next stage is due. */
export interface StageOutcome {
  change?: QueryDeepPartialEntity<Release> & { status?: ReleaseStatus };
  lines?: LogLine[];
  /** Further writes in the same transaction. */
  inTransaction?: (tx: EntityManager) => Promise<void>;
  /** Called after the commit, to publish it. */
  onCommitted?: () => void;
}

/**
 * One step of the pipeline. It may run again after a crash, so it makes changes only through its outcome, except for the
 * icon of the metadata stage, which is idempotent.
 */
export interface ReleaseStage {
  run(release: Release, lease: ReleaseLease): Promise<StageOutcome>;
}

/** An outcome that ends a release. @param message what happened and what to do */
export function failed(status: 'FAILURE' | 'FAILURE_SCAN', stage: Stage, message: string): StageOutcome {
  return { change: { status }, lines: [{ stage, level: 'error', message }] };
}
