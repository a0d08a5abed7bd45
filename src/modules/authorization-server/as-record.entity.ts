import { Column, CreateDateColumn, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import { AsGrant } from './as-grant.entity.js';

/** A code, an access or refresh token, an interaction or a used assertion of the authorization server. */
@Entity('as_records')
@Index('as_records_grant', ['grantId'], { where: 'grant_id IS NOT NULL' })
@Index('as_records_expires', ['expiresAt'])
@Index('as_records_interactions', ['createdAt'], { where: `kind = 'Interaction'` })
@Index('as_records_begun', ['address', 'clientId', 'createdAt'], { where: `kind = 'Interaction'` })
export class AsRecord {
  /** The name of its model in oidc-provider, such as `RefreshToken`. */
  @PrimaryColumn('text', { primaryKeyConstraintName: 'as_records_pk' })
  kind: string;

  /** SHA-256 of the token or id. */
  @PrimaryColumn('bytea', { name: 'id_hash', primaryKeyConstraintName: 'as_records_pk' })
  idHash: Buffer;

  /** CASCADE: it ends with its grant. */
  @ForeignKey(() => AsGrant, { name: 'as_records_grant_fk', onDelete: 'CASCADE' })
  @Column('uuid', { name: 'grant_id', nullable: true })
  grantId: string | null;

  /** Of a refresh token: the hash of the one that was used to make it. */
  @Column('bytea', { nullable: true })
  predecessor: Buffer | null;

  /** Of an interaction: the address that began it (`peerOf`). */
  @Column('text', { nullable: true })
  address: string | null;

  /** Of an interaction: the client. */
  @Column('text', { name: 'client_id', nullable: true })
  clientId: string | null;

  /** The payload without the id, sealed for kind and hash. */
  @Column('text')
  sealed: string;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz', precision: 3 })
  createdAt: Date;

  @Column({ type: 'timestamptz', name: 'consumed_at', precision: 3, nullable: true })
  consumedAt: Date | null;

  /** When a used refresh token ends; null while its successor was not used. */
  @Column({ type: 'timestamptz', name: 'grace_until', precision: 3, nullable: true })
  graceUntil: Date | null;

  @Column({ type: 'timestamptz', name: 'expires_at', precision: 3 })
  expiresAt: Date;
}
