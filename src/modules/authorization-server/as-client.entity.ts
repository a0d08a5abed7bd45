import { Check, Column, CreateDateColumn, Entity, Index, PrimaryColumn } from 'typeorm';

/** An OAuth client: one that registered itself (RFC 7591), or the last good copy of a client id metadata document. */
@Entity('as_clients')
@Index('as_clients_unfinished', ['createdAt'], { where: 'first_used_at IS NULL' })
@Check('as_clients_source', 'num_nonnulls(sealed, document) = 1')
export class AsClient {
  /** The URL of a client id metadata document is its client id. */
  @PrimaryColumn('text', { primaryKeyConstraintName: 'as_clients_pkey' })
  id: string;

  /** The registration, encrypted for the id. */
  @Column('text', { nullable: true })
  sealed: string | null;

  @Column('text', { nullable: true })
  document: string | null;

  /** Address of the registration, for the limit of registrations. */
  @Column('text', { nullable: true })
  address: string | null;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz', precision: 3 })
  createdAt: Date;

  /** Null until a user authorized it: such registrations are deleted after a day. */
  @Column({ type: 'timestamptz', name: 'first_used_at', precision: 3, nullable: true })
  firstUsedAt: Date | null;

  @Column({ type: 'timestamptz', name: 'last_used_at', precision: 3, nullable: true })
  lastUsedAt: Date | null;
}
