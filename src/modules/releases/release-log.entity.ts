import { Check, Column, Entity, Index, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import type { Relation } from 'typeorm';
import { stages, type Stage } from './release-state.js';
import { Release } from './release.entity.js';

/** `start` and `end` frame a stage; `error` is the entry that says why a release failed. */
export const logLevels = ['start', 'end', 'info', 'success', 'warning', 'error'] as const;
export type LogLevel = (typeof logLevels)[number];

/** One line of what the pipeline did. */
@Entity('release_logs')
@Index('release_logs_release', ['releaseId', 'seq'])
@Check('release_logs_stage', `"stage" IN (${stages.map((stage) => `'${stage}'`).join(', ')})`)
export class ReleaseLog {
  /** Order within all releases; what `Last-Event-ID` names. Text, since a bigint does not fit a number. */
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

  /** Why, where the message says what. */
  @Column('text', { nullable: true })
  error: string | null;

  @Column({ type: 'timestamptz', name: 'created_at', precision: 3, default: () => 'clock_timestamp()' })
  createdAt: Date;
}
