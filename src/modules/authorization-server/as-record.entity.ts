import { Column, CreateDateColumn, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import { AsGrant } from './as-grant.entity.js';

@Entity('as_records')
@Index('as_records_grant', ['grantId'], { where: 'grant_id IS NOT NULL' })
@Index('as_records_expires', ['expiresAt'])
@Index('as_records_interactions', ['createdAt'], { where: `kind = 'Interaction'` })
@Index('as_records_begun', ['address', 'clientId', 'createdAt'], { where: `kind = 'Interaction'` })
export class AsRecord {
  /** The model name in oidc-provider, such as `RefreshToken`. */
  @PrimaryColumn('text', { primaryKeyConstraintName: 'as_records_pk' })
  kind: string;

  /** SHA-256 of the token or id. */
  @PrimaryColumn('bytea', { name: 'id_hash', primaryKeyConstraintName: 'as_records_pk' })
  idHash: Buffer;

  @ForeignKey(() => AsGrant, { name: 'as_records_grant_fk', onDelete: 'CASCADE' })
  @Column('uuid', { name: 'grant_id', nullable: true })
  grantId: string | null;

  /** Hash of the refresh token that was exchanged for this one. */
  @Column('bytea', { nullable: true })
  predecessor: Buffer | null;

  /** Address that started an interaction (`peerOf`). */
  @Column('text', { nullable: true })
  address: string | null;

  @Column('text', { name: 'client_id', nullable: true })
  clientId: string | null;

  /** The payload without the id, encrypted for kind and hash. */
  @Column('text')
  sealed: string;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz', precision: 3 })
  createdAt: Date;

  @Column({ type: 'timestamptz', name: 'consumed_at', precision: 3, nullable: true })
  consumedAt: Date | null;

  /** Expiry of a used refresh token; null until its successor is used. */
  @Column({ type: 'timestamptz', name: 'grace_until', precision: 3, nullable: true })
  graceUntil: Date | null;

  @Column({ type: 'timestamptz', name: 'expires_at', precision: 3 })
  expiresAt: Date;
}
