import { Column, CreateDateColumn, Entity, ForeignKey, Index, PrimaryGeneratedColumn } from 'typeorm';
import { Account } from '../auth/account.entity.js';
import { Server } from '../servers/server.entity.js';
import { Grant } from './grant.entity.js';

/** A request for access, open until it is decided, and deleted after 30 days. */
@Entity('access_requests')
@Index('access_requests_open', ['accountId', 'serverId'], { unique: true, where: 'decided_at IS NULL' })
@Index('access_requests_account', ['accountId', 'createdAt'])
@Index('access_requests_server', ['serverId', 'createdAt'])
export class AccessRequest {
  @PrimaryGeneratedColumn('uuid')
  id: string;

  @ForeignKey(() => Account, { name: 'access_requests_account_fk', onDelete: 'CASCADE' })
  @Column('uuid', { name: 'account_id' })
  accountId: string;

  @ForeignKey(() => Server, { name: 'access_requests_server_fk', onDelete: 'CASCADE' })
  @Column('uuid', { name: 'server_id' })
  serverId: string;

  @Column('text')
  text: string;

  @Index('access_requests_created')
  @CreateDateColumn({ name: 'created_at', type: 'timestamptz', precision: 3 })
  createdAt: Date;

  /** Time of the decision; null while the request is open. */
  @Column({ type: 'timestamptz', name: 'decided_at', precision: 3, nullable: true })
  decidedAt: Date | null;

  /** Kept as a record, without a foreign key. */
  @Column('uuid', { name: 'decided_by', nullable: true })
  decidedBy: string | null;

  /** The reason of a rejection; null for a grant. */
  @Column('text', { nullable: true })
  answer: string | null;

  /** Null without a grant, and after it was revoked. */
  @Index('access_requests_grant')
  @ForeignKey(() => Grant, { name: 'access_requests_grant_fk', onDelete: 'SET NULL' })
  @Column('uuid', { name: 'grant_id', nullable: true })
  grantId: string | null;
}
