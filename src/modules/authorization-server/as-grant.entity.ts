import { Check, Column, CreateDateColumn, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import { Account } from '../auth/account.entity.js';
import { Connection } from '../connections/core/connection.entity.js';
import { Namespace } from '../namespaces/namespace.entity.js';
import { Server } from '../servers/server.entity.js';

/**
 * What a person allowed a client: one (account, client, redirect, endpoint). Codes, access and refresh tokens are of one grant
 * and end with it.
 */
@Entity('as_grants')
@Index('as_grants_one', { synchronize: false })
@Index('as_grants_connection', ['connectionId'], { where: 'connection_id IS NOT NULL' })
@Index('as_grants_namespace', ['namespaceId'], { where: 'namespace_id IS NOT NULL' })
@Index('as_grants_server', ['serverId'], { where: 'server_id IS NOT NULL' })
@Check('as_grants_target', 'num_nonnulls(connection_id, namespace_id, server_id) = 1')
export class AsGrant {
  @PrimaryColumn('uuid', { primaryKeyConstraintName: 'as_grants_pkey' })
  id: string;

  @ForeignKey(() => Account, { name: 'as_grants_account_fk', onDelete: 'CASCADE' })
  @Column('uuid', { name: 'account_id' })
  accountId: string;

  /** No foreign key: the document of a client is a copy that may go. */
  @Column('text', { name: 'client_id' })
  clientId: string;

  /** The name that the client gave itself. */
  @Column('text', { name: 'client_name' })
  clientName: string;

  /** The host of a client id metadata document, which is verified; null for a client that registered itself. */
  @Column('text', { name: 'client_host', nullable: true })
  clientHost: string | null;

  /** The redirect URI; of a loopback address without host and port. */
  @Column('text', { name: 'redirect_key' })
  redirectKey: string;

  /** SHA-256 of all redirect URIs of the client at the time of the consent: a remembered consent ends when they change. */
  @Column('bytea', { name: 'redirects_hash' })
  redirectsHash: Buffer;

  /** The address of the endpoint, as tokens name it (RFC 8707). */
  @Column('text')
  resource: string;

  /** CASCADE: a grant goes with its connection. */
  @ForeignKey(() => Connection, { name: 'as_grants_connection_fk', onDelete: 'CASCADE' })
  @Column('uuid', { name: 'connection_id', nullable: true })
  connectionId: string | null;

  /** CASCADE: a grant goes with its namespace. */
  @ForeignKey(() => Namespace, { name: 'as_grants_namespace_fk', onDelete: 'CASCADE' })
  @Column('uuid', { name: 'namespace_id', nullable: true })
  namespaceId: string | null;

  /** CASCADE: a grant goes with its server. */
  @ForeignKey(() => Server, { name: 'as_grants_server_fk', onDelete: 'CASCADE' })
  @Column('uuid', { name: 'server_id', nullable: true })
  serverId: string | null;

  /** True: the client with this redirect is not asked about again. */
  @Column('boolean', { name: 'is_remembered', default: false })
  isRemembered: boolean;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz', precision: 3 })
  createdAt: Date;

  @Column({ type: 'timestamptz', name: 'last_used_at', precision: 3, nullable: true })
  lastUsedAt: Date | null;

  /** Moves on with each refresh. */
  @Column({ type: 'timestamptz', name: 'expires_at', precision: 3 })
  expiresAt: Date;
}
