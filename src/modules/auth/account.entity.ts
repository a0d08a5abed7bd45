import {
  Check,
  Column,
  CreateDateColumn,
  Entity,
  ForeignKey,
  Index,
  PrimaryColumn,
  PrimaryGeneratedColumn,
  JoinColumn,
  ManyToOne,
  type Relation,
} from 'typeorm';

import { roles, type Role } from './access.types.js';

export const accountKinds = ['user', 'organization'] as const;
export type AccountKind = (typeof accountKinds)[number];

/** An API key, of which only the SHA-256 and the first characters are stored. */
@Entity('api_keys')
export class ApiKey {
  @PrimaryGeneratedColumn('uuid')
  id: string;

  @Index('api_keys_account')
  @Column('uuid', { name: 'account_id' })
  accountId: string;

  @ManyToOne(() => Account, { nullable: false, onDelete: 'CASCADE' })
  @JoinColumn({ name: 'account_id', foreignKeyConstraintName: 'api_keys_account_fk' })
  account: Relation<Account>;

  @Column('text')
  name: string;

  @Column('text')
  prefix: string;

  @Index('api_keys_hash', { unique: true })
  @Column('bytea')
  hash: Buffer;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz', precision: 3 })
  createdAt: Date;

  /** Null until first used; up to a second behind. */
  @Column({ type: 'timestamptz', name: 'last_used_at', precision: 3, nullable: true })
  lastUsedAt: Date | null;

  /** Time of expiry; null: does not expire. */
  @Index('api_keys_expires')
  @Column({ type: 'timestamptz', name: 'expires_at', precision: 3, nullable: true })
  expiresAt: Date | null;

  /** Scopes, as `level` or `level:namespace`; null: all rights of the account. */
  @Column('text', { array: true, nullable: true })
  scopes: string[] | null;

  /** Null until first used. */
  @Column('text', { name: 'last_address', nullable: true })
  lastAddress: string | null;

  @Index('api_keys_replaced_by', { where: '"replaced_by" IS NOT NULL' })
  @ForeignKey(() => ApiKey, { name: 'api_keys_replaced_by_fk', onDelete: 'SET NULL' })
  @Column('uuid', { name: 'replaced_by', nullable: true })
  replacedBy: string | null;

  /** Ids of the keys that created this key, directly or through other keys; the nearest is last. No foreign keys: ids of revoked keys remain. */
  @Column('uuid', { name: 'made_by', array: true, default: '{}' })
  madeBy: string[];

  /** The account whose key created it; null if Slipway or an earlier version did. */
  @Column('uuid', { name: 'maker_id', nullable: true })
  makerId: string | null;
}

@Entity('accounts')
@Index('accounts_name_skeletons', { synchronize: false })
@Check('accounts_kind', `"kind" IN ('user', 'organization')`)
export class Account {
  @PrimaryGeneratedColumn('uuid')
  id: string;

  @Index('accounts_name', { unique: true })
  @Column('text')
  name: string;

  /** Skeleton of the name, for comparison with names that look alike; null until computed. */
  @Index('accounts_without_skeletons', { synchronize: false })
  @Column({
    type: 'text',
    name: 'name_skeletons',
    array: true,
    nullable: true,
    select: false,
    insert: false,
    update: false,
  })
  nameSkeletons: string[] | null;

  @Column('text')
  kind: AccountKind;

  /** True for an operator, who manages accounts and keys but does not own their targets. */
  @Column('boolean', { name: 'is_operator', default: false })
  isOperator: boolean;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz', precision: 3 })
  createdAt: Date;

  /** Time at which the account was disabled; its keys and sessions are rejected. Null: enabled. */
  @Column({ type: 'timestamptz', name: 'disabled_at', precision: 3, nullable: true })
  disabledAt: Date | null;

  /**
   * Since when the account's credentials are rejected, until the user signs in through the company's directory; null: accepted. Keys of
   * operators are never rejected.
   */
  @Column({ type: 'timestamptz', name: 'credentials_suspended_at', precision: 3, nullable: true })
  credentialsSuspendedAt: Date | null;

  /** Only operators see this reason. */
  @Column('text', { name: 'credentials_suspended_for', nullable: true })
  credentialsSuspendedFor: string | null;

  /**
   * Rises whenever the account's sign-ins are revoked: an invitation is used, the password changes, the account is disabled. Sessions and
   * client authorizations with an older value are invalid.
   */
  @Column('integer', { name: 'logins_epoch', default: 0 })
  loginsEpoch: number;

  /** An IANA time zone; null for UTC. */
  @Column('text', { name: 'time_zone', nullable: true })
  timeZone: string | null;

  /** The organization whose invitation created the account; null for others. */
  @Index('accounts_made_for', { where: 'made_for IS NOT NULL' })
  @Column({ type: 'uuid', name: 'made_for', nullable: true, select: false, insert: false, update: false })
  madeFor: string | null;
}

@Entity('memberships')
@Check('memberships_role', `role IN (${roles.map((role) => `'${role}'`).join(', ')})`)
export class Membership {
  @ForeignKey(() => Account, { name: 'memberships_organization_fk', onDelete: 'CASCADE' })
  @PrimaryColumn('uuid', { name: 'organization_id', primaryKeyConstraintName: 'memberships_pk' })
  organizationId: string;

  @Index('memberships_account')
  @ForeignKey(() => Account, { name: 'memberships_account_fk', onDelete: 'CASCADE' })
  @PrimaryColumn('uuid', { name: 'account_id', primaryKeyConstraintName: 'memberships_pk' })
  accountId: string;

  @Column('text')
  role: Role;

  /** Kept as a record, without a foreign key. */
  @Column('uuid', { name: 'created_by' })
  createdBy: string;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz', precision: 3 })
  createdAt: Date;

  /** The module whose rules set the role and can remove it; null: a person did. */
  @Column('text', { nullable: true })
  source: string | null;
}
