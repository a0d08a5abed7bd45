import { Check, Column, CreateDateColumn, Entity, ForeignKey, Generated, Index, PrimaryColumn } from 'typeorm';
import { roles, type Role } from '../auth/access.types.js';
import { Account, ApiKey } from '../auth/account.entity.js';

/** The user who signs in as an account. Exists from the first password on. */
@Entity('people')
export class Person {
  @ForeignKey(() => Account, { name: 'people_account_fk', onDelete: 'CASCADE' })
  @PrimaryColumn('uuid', { name: 'account_id' })
  accountId: string;

  /** The hash has the form of `PasswordsService`; null for a user who signs in with an API key only. */
  @Column('text', { name: 'password_hash', nullable: true })
  passwordHash: string | null;

  @Column({ type: 'timestamptz', name: 'password_at', precision: 3, nullable: true })
  passwordAt: Date | null;
}

/** A browser session: the cookie holds its secret, this row the SHA-256. */
@Entity('sessions')
export class Session {
  @PrimaryColumn('bytea')
  hash: Buffer;

  @Index('sessions_id', { unique: true })
  @Generated('uuid')
  @Column('uuid')
  id: string;

  @Index('sessions_account')
  @ForeignKey(() => Account, { name: 'sessions_account_fk', onDelete: 'CASCADE' })
  @Column('uuid', { name: 'account_id' })
  accountId: string;

  /** Key with which the session began; null for a password. CASCADE: revoking the key closes the session. */
  @Index('sessions_key', { where: '"key_id" IS NOT NULL' })
  @ForeignKey(() => ApiKey, { name: 'sessions_key_fk', onDelete: 'CASCADE' })
  @Column('uuid', { name: 'key_id', nullable: true })
  keyId: string | null;

  @Column('text')
  address: string;

  @Column('text')
  agent: string;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz', precision: 3 })
  createdAt: Date;

  /** Time of the last use, up to an hour behind. */
  @Column({ type: 'timestamptz', name: 'last_used_at', precision: 3, default: () => 'now()' })
  lastUsedAt: Date;

  @Index('sessions_expires')
  @Column({ type: 'timestamptz', name: 'expires_at', precision: 3 })
  expiresAt: Date;

  /** Time beyond which use does not extend the session; null if it began with a password or key. */
  @Column({ type: 'timestamptz', name: 'ends_at', precision: 3, nullable: true })
  endsAt: Date | null;
}

/** An invitation: the link holds a secret, this row its SHA-256. An invitation of one account into an organization has no link. */
@Entity('invitations')
@Index('invitations_invited', ['invitedId', 'accountId'], { unique: true })
@Check('invitations_role', `role IN (${roles.map((role) => `'${role}'`).join(', ')})`)
export class Invitation {
  @PrimaryColumn('bytea')
  hash: Buffer;

  @Index('invitations_account')
  @ForeignKey(() => Account, { name: 'invitations_account_fk', onDelete: 'CASCADE' })
  @Column('uuid', { name: 'account_id' })
  accountId: string;

  /** Null for a password; otherwise the account is an organization, which the user joins with this role. */
  @Column('text', { nullable: true })
  role: Role | null;

  @Generated('uuid')
  @Column('uuid')
  id: string;

  /** The only account that can accept the invitation, without a link; null for the holder of the link. */
  @ForeignKey(() => Account, { name: 'invitations_invited_fk', onDelete: 'CASCADE' })
  @Column('uuid', { name: 'invited_id', nullable: true })
  invitedId: string | null;

  /** Kept as a record, without a foreign key. */
  @Column('uuid', { name: 'created_by' })
  createdBy: string;

  /** Null for a password and for Slipway itself. */
  @Column('uuid', { name: 'made_by_key', nullable: true, default: () => 'current_credential()' })
  madeByKey: string | null;

  @Column({ type: 'timestamptz', name: 'expires_at', precision: 3 })
  expiresAt: Date;

  @Column({ type: 'timestamptz', name: 'used_at', precision: 3, nullable: true })
  usedAt: Date | null;
}
