import { Check, Column, Entity, Index, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import type { Relation } from 'typeorm';
import { stages, type Stage } from './release-state.js';
import { Release } from './release.entity.js';

/** `start` and `end` frame a stage; `error` is the line with the reason why a release failed. */
export const logLevels = ['start', 'end', 'info', 'success', 'warning', 'error'] as const;
export type LogLevel = (typeof logLevels)[number];

/** A line to be written to a release's log. */
export interface LogLine {
  stage: Stage;
  level: LogLevel;
  message: string;
  /** The reason, if the message does not hold it. */
  error?: string;
}

/** One line of a release's log. */
@Entity('release_logs')
@Index('release_logs_release', ['releaseId', 'seq'])
@Check('release_logs_stage', `"stage" IN (${stages.map((stage) => `'${stage}'`).join(', ')})`)
export class ReleaseLog {
  /** Order within all releases, and the value of `Last-Event-ID`. Text, since a bigint does not fit a number. */
  @PrimaryColumn({ type: 'bigint', generated: 'identity', generatedIdentity: 'ALWAYS' })
  seq: string;

  @Column('uuid', { name: 'release_id' })
  releaseId: string;

  @ManyToOne(() => Release, { nullable: false, onDelete: 'CASCADE' })
  @JoinColumn({ name: 'release_id', foreignKeyConstraintName: 'release_logs_release_fk' })
  release: Relation<Release>;

  @Column('text')
  stage: Stage;

  @Column('text')
  level: LogLevel;

  @Column('text')
  message: string;

  /** The reason, if the message does not hold it. */
  @Column('text', { nullable: true })
  error: string | null;

  @Column({ type: 'timestamptz', name: 'created_at', precision: 3, default: () => 'clock_timestamp()' })
  createdAt: Date;
}
