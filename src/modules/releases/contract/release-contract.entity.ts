import { ForeignKey, Check, Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { Server } from '../../servers/server.entity.js';
import { Release } from '../release.entity.js';
import {
  contractFinders,
  contractSummaries,
  type ContractChange,
  type ContractFinder,
  type ContractSummary,
} from './contract-change.js';

@Entity('release_contracts')
@Index('release_contracts_newest', ['serverId', 'seq'])
@Check('release_contracts_found_by', `"found_by" IN (${contractFinders.map((finder) => `'${finder}'`).join(', ')})`)
@Check('release_contracts_summary', `"summary" IN (${contractSummaries.map((summary) => `'${summary}'`).join(', ')})`)
export class ReleaseContract {
  /** A string, because a bigint does not fit a number. */
  @PrimaryColumn({ type: 'bigint', generated: 'identity', generatedIdentity: 'ALWAYS' })
  seq: string;

  @ForeignKey(() => Server, { name: 'release_contracts_server_fk', onDelete: 'CASCADE' })
  @Column('uuid', { name: 'server_id' })
  serverId: string;

  @ForeignKey(() => Release, { name: 'release_contracts_release_fk', onDelete: 'CASCADE' })
  @Column('uuid', { name: 'release_id' })
  releaseId: string;

  /** The release that was current before: the same one for a rescan, null for the first release. */
  @Column('uuid', { name: 'previous_release_id', nullable: true })
  previousReleaseId: string | null;

  @Column('text', { name: 'found_by', default: 'release' })
  foundBy: ContractFinder;

  @Column('text')
  hash: string;

  @Column('text')
  summary: ContractSummary;

  /** Number of all changes; `changes` contains the first 200. */
  @Column('integer', { name: 'change_count' })
  changeCount: number;

  @Column('jsonb', { default: [] })
  changes: ContractChange[];

  @Column({ type: 'timestamptz', precision: 3, default: () => 'now()' })
  at: Date;
}
