import { Check, Column, CreateDateColumn, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import { Account, ApiKey } from '../auth/account.entity.js';
import { Connection } from '../connections/core/connection.entity.js';
import { Grant } from '../grants/grant.entity.js';
import { Namespace } from '../namespaces/namespace.entity.js';
import { Server } from '../servers/server.entity.js';

/**
 * A user's consent for one client and one endpoint. Its code and tokens are revoked with it, and it is revoked with the account's sign-ins,
 * the API key of the session, or the grant on the target.
 */
@Entity('as_grants')
@Index('as_grants_account', ['accountId', 'createdAt'])
@Index('as_grants_key', ['keyId'], { where: 'key_id IS NOT NULL' })
@Index('as_grants_right', ['rightId'], { where: 'right_id IS NOT NULL' })
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

  /** `accounts.logins_epoch` when the consenting session was checked. The authorization is valid while they are equal. */
  @Column('integer', { name: 'logins_epoch', default: 0 })
  loginsEpoch: number;

  /** The API key with which the session began; null for a password. CASCADE: revoking the key revokes the authorization. */
  @ForeignKey(() => ApiKey, { name: 'as_grants_key_fk', onDelete: 'CASCADE' })
  @Column('uuid', { name: 'key_id', nullable: true })
  keyId: string | null;

  /** The row of `grants` that opens the target; null for an own or public target. CASCADE: revoking the grant revokes the authorization. */
  @ForeignKey(() => Grant, { name: 'as_grants_right_fk', onDelete: 'CASCADE' })
  @Column('uuid', { name: 'right_id', nullable: true })
  rightId: string | null;

  /** The address of the consenting browser; null for authorizations of an earlier version. */
  @Column('text', { nullable: true })
  address: string | null;

  /** No foreign key: the document of a client is a copy that can be deleted. */
  @Column('text', { name: 'client_id' })
  clientId: string;

  @Column('text', { name: 'client_name' })
  clientName: string;

  /** The host of a client id metadata document, which is verified; null for a client that registered itself. */
  @Column('text', { name: 'client_host', nullable: true })
  clientHost: string | null;

  /** The redirect URI; for a loopback address without host and port. */
  @Column('text', { name: 'redirect_key' })
  redirectKey: string;

  /** SHA-256 of all redirect URIs of the client at the consent: a remembered consent expires when they change. */
  @Column('bytea', { name: 'redirects_hash' })
  redirectsHash: Buffer;

  /** The address of the endpoint, as tokens name it (RFC 8707). */
  @Column('text')
  resource: string;

  @ForeignKey(() => Connection, { name: 'as_grants_connection_fk', onDelete: 'CASCADE' })
  @Column('uuid', { name: 'connection_id', nullable: true })
  connectionId: string | null;

  @ForeignKey(() => Namespace, { name: 'as_grants_namespace_fk', onDelete: 'CASCADE' })
  @Column('uuid', { name: 'namespace_id', nullable: true })
  namespaceId: string | null;

  @ForeignKey(() => Server, { name: 'as_grants_server_fk', onDelete: 'CASCADE' })
  @Column('uuid', { name: 'server_id', nullable: true })
  serverId: string | null;

  /** True if the consent page is skipped for the client with this redirect URI. */
  @Column('boolean', { name: 'is_remembered', default: false })
  isRemembered: boolean;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz', precision: 3 })
  createdAt: Date;

  @Column({ type: 'timestamptz', name: 'last_used_at', precision: 3, nullable: true })
  lastUsedAt: Date | null;

  @Column({ type: 'timestamptz', name: 'expires_at', precision: 3 })
  expiresAt: Date;
}
