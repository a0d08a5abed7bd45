import { Check, Column, Entity, Index, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import type { Relation } from 'typeorm';
import { Server } from '../../servers/server.entity.js';
import { Release } from '../release.entity.js';
import {
  contractFinders,
  contractSummaries,
  type ContractChange,
  type ContractFinder,
  type ContractSummary,
} from './contract-change.js';

/** What callers of a server were offered from one moment on, and how that differs from what they were offered before. */
@Entity('release_contracts')
@Index('release_contracts_newest', ['serverId', 'seq'])
@Check('release_contracts_found_by', `"found_by" IN (${contractFinders.map((one) => `'${one}'`).join(', ')})`)
@Check('release_contracts_summary', `"summary" IN (${contractSummaries.map((one) => `'${one}'`).join(', ')})`)
export class ReleaseContract {
  /** Order of being found. Text, since a bigint does not fit a number. */
  @PrimaryColumn({ type: 'bigint', generated: 'identity', generatedIdentity: 'ALWAYS' })
  seq: string;

  @Column('uuid', { name: 'server_id' })
  serverId: string;

  @ManyToOne(() => Server, { nullable: false, onDelete: 'CASCADE' })
  @JoinColumn({ name: 'server_id', foreignKeyConstraintName: 'release_contracts_server_fk' })
  server: Relation<Server>;

  @Column('uuid', { name: 'release_id' })
  releaseId: string;

  @ManyToOne(() => Release, { nullable: false, onDelete: 'CASCADE' })
  @JoinColumn({ name: 'release_id', foreignKeyConstraintName: 'release_contracts_release_fk' })
  release: Relation<Release>;

  /** The one that was current before, which is the same one for a rescan; null for the first. */
  @Column('uuid', { name: 'previous_release_id', nullable: true })
  previousReleaseId: string | null;

  /** What it was found by: the publication of the release, or another scan of it. */
  @Column('text', { name: 'found_by', default: 'release' })
  foundBy: ContractFinder;

  /** SHA-256 of what is offered, in canonical form; hex. */
  @Column('text')
  hash: string;

  @Column('text')
  summary: ContractSummary;

  /** All changes; `changes` holds the first of them. */
  @Column('integer', { name: 'change_count' })
  changeCount: number;

  @Column('jsonb', { default: [] })
  changes: ContractChange[];

  @Column({ type: 'timestamptz', precision: 3, default: () => 'now()' })
  at: Date;
}
