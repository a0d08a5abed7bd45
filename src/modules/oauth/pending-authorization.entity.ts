import { Check, Column, Entity, ForeignKey, Index } from 'typeorm';
import { AuthorizationColumns } from './authorization-columns.js';
import { ownerKinds } from './credentials.types.js';
import { OAuthClient } from './oauth-client.entity.js';

/** A pending authorization: opened by its signed link, begun by the button (which binds it to that browser), and completed by the response with its state. */
@Entity('pending_authorizations')
@Index('pending_authorizations_owner', ['ownerKind', 'ownerId'])
@Index('pending_authorizations_state', ['stateHash'], { unique: true })
@Index('pending_authorizations_client', ['clientRowId'])
@Index('pending_authorizations_expires', ['expiresAt'])
@Check('pending_authorizations_owner_kind', `"owner_kind" IN (${ownerKinds.map((kind) => `'${kind}'`).join(', ')})`)
export class PendingAuthorization extends AuthorizationColumns {
  @Column('text')
  label: string;

  /** Null for an auth adapter, which needs no client. CASCADE: a response for a deleted client cannot be redeemed. */
  @ForeignKey(() => OAuthClient, { name: 'pending_authorizations_client_fk', onDelete: 'CASCADE' })
  @Column('uuid', { name: 'client_row_id', nullable: true })
  clientRowId: string | null;

  /** The name that the MCP server gives itself in its metadata; null without one. */
  @Column('text', { name: 'resource_name', nullable: true })
  resourceName: string | null;

  /** Null before the button is pressed. No foreign key: the account is checked at each use. */
  @Column('uuid', { name: 'account_id', nullable: true })
  accountId: string | null;

  @Column('uuid', { name: 'key_id', nullable: true })
  keyId: string | null;

  /**
   * `accounts.logins_epoch` when the link was issued; for a link that needs no sign-in -1 minus it, so -1 for 0. Null before the button is
   * pressed.
   */
  @Column('integer', { name: 'logins_epoch', nullable: true })
  loginsEpoch: number | null;

  @Column({ type: 'timestamptz', name: 'expires_at', precision: 3 })
  expiresAt: Date;

  /** Time of the last press of the button; the response must arrive within ten minutes. */
  @Column({ type: 'timestamptz', name: 'started_at', precision: 3, nullable: true })
  startedAt: Date | null;

  /** Identifies the browser that pressed the button, by the SHA-256 of its cookie. */
  @Column('bytea', { name: 'browser_hash', nullable: true })
  browserHash: Buffer | null;

  /** SHA-256 of the `state` parameter; null before the button is pressed, and after a response has used it up. */
  @Column('bytea', { name: 'state_hash', nullable: true })
  stateHash: Buffer | null;

  @Column('text', { name: 'sealed_verifier', nullable: true })
  sealedVerifier: string | null;

  /** Time at which the authorization was completed or its link invalidated. */
  @Column({ type: 'timestamptz', name: 'completed_at', precision: 3, nullable: true })
  completedAt: Date | null;
}
