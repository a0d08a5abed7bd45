import {
  Check,
  Column,
  CreateDateColumn,
  Entity,
  Index,
  PrimaryGeneratedColumn,
  PrimaryColumn,
  ForeignKey,
} from 'typeorm';
import { Server } from '../servers/server.entity.js';
import { releaseTypes, type BundleRuntime, type ReleaseType, type ServerSnapshot } from '../servers/server.types.js';
import { releaseStatuses, stages, type ReleaseStatus, type Stage } from './release-state.js';

const toSqlList = (values: readonly string[]) => values.map((value) => `'${value}'`).join(', ');

/** `start` and `end` frame a stage; `error` is the reason why a release failed. */
export const logLevels = ['start', 'end', 'info', 'success', 'warning', 'error'] as const;
export type LogLevel = (typeof logLevels)[number];

export const artifactKinds = ['module', 'sourcemap', 'bundle'] as const;

export type ArtifactKind = (typeof artifactKinds)[number];

@Entity('release_artifacts')
@Check('release_artifacts_kind', `"kind" IN (${toSqlList(artifactKinds)})`)
export class ReleaseArtifact {
  @ForeignKey(() => Release, { name: 'release_artifacts_release_fk', onDelete: 'CASCADE' })
  @PrimaryColumn('uuid', { name: 'release_id' })
  releaseId: string;

  @PrimaryColumn('text')
  kind: ArtifactKind;

  @Index('release_artifacts_hash')
  @Column('text')
  hash: string;

  @Column('integer')
  bytes: number;
}

export interface LogLine extends Pick<ReleaseLog, 'stage' | 'level' | 'message'> {
  /** The cause, if the message does not contain it. */
  error?: string;
}

@Entity('release_logs')
@Index('release_logs_release', ['releaseId', 'seq'])
@Check('release_logs_stage', `"stage" IN (${toSqlList(stages)})`)
export class ReleaseLog {
  /** Order within all releases, and the value of `Last-Event-ID`. A string, because a bigint does not fit a number. */
  @PrimaryColumn({ type: 'bigint', generated: 'identity', generatedIdentity: 'ALWAYS' })
  seq: string;

  @ForeignKey(() => Release, { name: 'release_logs_release_fk', onDelete: 'CASCADE' })
  @Column('uuid', { name: 'release_id' })
  releaseId: string;

  @Column('text')
  stage: Stage;

  @Column('text')
  level: LogLevel;

  @Column('text')
  message: string;

  /** The cause, if the message does not contain it. */
  @Column('text', { nullable: true })
  error: string | null;

  @Column({ type: 'timestamptz', name: 'created_at', precision: 3, default: () => 'clock_timestamp()' })
  createdAt: Date;
}

/**
 * One published version of a server, and the progress of its pipeline.
 *
 * A worker holds a release as `lease_holder` until `lease_until`. Its writes are guarded by both and by `attempt`.
 */
@Entity('releases')
@Index('releases_newest', ['serverId', 'seq'])
@Index('releases_number', ['serverId', 'number'], { unique: true })
@Index('releases_unfinished', ['leaseUntil'], { where: `"status" IN ('QUEUED', 'WORKING', 'AUTH_REQUIRED')` })
@Check('releases_status', `"status" IN (${toSqlList(releaseStatuses)})`)
@Check('releases_stage', `"stage" IN (${toSqlList(stages)})`)
@Check('releases_type', `"type" IN (${releaseTypes.map((type) => `'${type}'`).join(', ')})`)
export class Release {
  @PrimaryGeneratedColumn('uuid')
  id: string;

  /** Order of publication. A string, because a bigint does not fit a number. */
  @Column({ type: 'bigint', generated: 'identity', generatedIdentity: 'ALWAYS' })
  seq: string;

  /** Number within the server, from 1. A trigger sets it and never reuses the numbers of deleted releases. */
  @Column('integer')
  number: number;

  /** CASCADE: releases are deleted with their server (Spec 4.11). */
  @ForeignKey(() => Server, { name: 'releases_server_fk', onDelete: 'CASCADE' })
  @Column('uuid', { name: 'server_id' })
  serverId: string;

  @Column('text')
  type: ReleaseType;

  @Column('text')
  status: ReleaseStatus;

  @Column('text', { default: 'deploy' })
  stage: Stage;

  /** Number of starts of the pipeline: jobs of earlier attempts have no effect. */
  @Column('integer', { default: 1 })
  attempt: number;

  /** Number of restarts; a release with too many fails. */
  @Column('integer', { default: 0 })
  recoveries: number;

  @Column('uuid', { name: 'lease_holder', nullable: true })
  leaseHolder: string | null;

  /**
   * Deadline of the worker's lease, of the job in the queue, or of the authorization. `infinity` (not a `Date`) while
   * it waits for a slot of its account.
   */
  @Column({ type: 'timestamptz', name: 'lease_until', precision: 3, nullable: true })
  leaseUntil: Date | null;

  @Column('text', { nullable: true })
  commit: string | null;

  @Column('text', { name: 'commit_message', nullable: true })
  commitMessage: string | null;

  @Column('text', { nullable: true })
  branch: string | null;

  /** URL of the upstream with masked query values, which `sealedUpstreamUrl` contains. */
  @Column('text', { name: 'upstream_url', nullable: true })
  upstreamUrl: string | null;

  /** A URL with a query, sealed by the vault for this row's id; null for any other. */
  @Column('text', { name: 'sealed_upstream_url', nullable: true })
  sealedUpstreamUrl: string | null;

  @Column('text', { nullable: true })
  runtime: BundleRuntime | null;

  /** Configuration schema in the publisher's order; null if none was published. */
  @Column('json', { name: 'config_schema', nullable: true })
  configSchema: Record<string, unknown> | null;

  @Column('jsonb', { name: 'server_card', nullable: true, select: false })
  serverCard: Record<string, unknown> | null;

  /** Requests of a hosted module to its host; null for other types. */
  @Column('jsonb', { name: 'hosting', nullable: true })
  hosting: HostingRequest | null;

  /** Headers for the scan only, sealed by the vault for this row's id. Removed when the status is final. */
  @Column('text', { name: 'sealed_scan_credentials', nullable: true, select: false })
  sealedScanCredentials: string | null;

  /** Snapshot of the server, which later stages and promotion read. */
  @Column('jsonb', { nullable: true, select: false })
  snapshot: ServerSnapshot | null;

  /**
   * The account that published it; null in rows of earlier versions. No foreign key: the record outlives the account.
   */
  @Column('uuid', { name: 'created_by', nullable: true })
  createdBy: string | null;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz', precision: 3 })
  createdAt: Date;

  @Column({ type: 'timestamptz', name: 'updated_at', precision: 3, default: () => 'now()' })
  updatedAt: Date;
}

export interface HostingRequest {
  stateful: boolean;
  hasAuthAdapter: boolean;
  secretNames: string[];
}
