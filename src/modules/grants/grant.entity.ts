import { Check, Column, CreateDateColumn, Entity, ForeignKey, Index, PrimaryGeneratedColumn } from 'typeorm';
import type { GrantLevel } from '../auth/access.types.js';
import { Account } from '../auth/account.entity.js';
import { Connection } from '../connections/core/connection.entity.js';
import { Namespace } from '../namespaces/namespace.entity.js';
import { Server } from '../servers/server.entity.js';

/**
 * A right that the owner of a server, connection or namespace grants another account, or everybody. At most one for each target and
 * account.
 */
@Entity('grants')
@Index('grants_server', ['serverId', 'subjectId'], { unique: true })
@Index('grants_connection', ['connectionId', 'subjectId'], { unique: true })
@Index('grants_namespace', ['namespaceId', 'subjectId'], { unique: true })
@Index('grants_subject', ['subjectId'])
@Index('grants_expiry', ['expiresAt'], { where: 'expires_at IS NOT NULL' })
@Check('grants_level', `level IN ('call', 'manage')`)
@Check('grants_target', 'num_nonnulls(server_id, connection_id, namespace_id) = 1')
@Check('grants_tools', `tools IS NULL OR level = 'call'`)
export class Grant {
  @PrimaryGeneratedColumn('uuid')
  id: string;

  /** The grantee; null stands for every account. */
  @ForeignKey(() => Account, { name: 'grants_subject_fk', onDelete: 'CASCADE' })
  @Column('uuid', { name: 'subject_id', nullable: true })
  subjectId: string | null;

  @ForeignKey(() => Server, { name: 'grants_server_fk', onDelete: 'CASCADE' })
  @Column('uuid', { name: 'server_id', nullable: true })
  serverId: string | null;

  @ForeignKey(() => Connection, { name: 'grants_connection_fk', onDelete: 'CASCADE' })
  @Column('uuid', { name: 'connection_id', nullable: true })
  connectionId: string | null;

  /** Opens all servers and connections in the namespace. */
  @ForeignKey(() => Namespace, { name: 'grants_namespace_fk', onDelete: 'CASCADE' })
  @Column('uuid', { name: 'namespace_id', nullable: true })
  namespaceId: string | null;

  @Column('text')
  level: GrantLevel;

  /** The only granted tools; null: everything. */
  @Column('text', { array: true, nullable: true })
  tools: string[] | null;

  /** Time of expiry; null: does not expire. */
  @Column('timestamptz', { name: 'expires_at', nullable: true })
  expiresAt: Date | null;

  /** Kept as a record, without a foreign key. */
  @Column('uuid', { name: 'created_by' })
  createdBy: string;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz', precision: 3 })
  createdAt: Date;
}
