import { Check, Column, Entity, Index, JoinColumn, ManyToOne } from 'typeorm';
import type { Relation } from 'typeorm';
import { AuthorizationColumns } from './authorization-columns.js';
import { ownerKinds } from './credentials.types.js';
import { OAuthClient } from './oauth-client.entity.js';

/** States of a credential. `required`: a user must authorize again, and the tokens are deleted. */
export const credentialStates = ['active', 'required'] as const;

/**
 * The tokens of one server or connection for one upstream. Deleted with the owner by triggers on `servers` and
 * `connections`, hand-written in the migration, since a foreign key cannot reference two tables.
 */
@Entity('upstream_credentials')
@Index('upstream_credentials_owner', ['ownerKind', 'ownerId'], { unique: true })
@Index('upstream_credentials_client', ['clientRowId'])
@Index('upstream_credentials_due', ['dueAt'])
@Check('upstream_credentials_owner_kind', `"owner_kind" IN (${ownerKinds.map((kind) => `'${kind}'`).join(', ')})`)
@Check('upstream_credentials_state', `"state" IN (${credentialStates.map((state) => `'${state}'`).join(', ')})`)
export class UpstreamCredential extends AuthorizationColumns {
  @Column('uuid', { name: 'client_row_id', nullable: true })
  clientRowId: string | null;

  /** SET NULL: without its client the tokens cannot be refreshed, but they stay valid until they expire. */
  @ManyToOne(() => OAuthClient, { nullable: true, onDelete: 'SET NULL' })
  @JoinColumn({ name: 'client_row_id', foreignKeyConstraintName: 'upstream_credentials_client_fk' })
  client: Relation<OAuthClient> | null;

  /** `{accessToken, refreshToken}`, encrypted by the vault for this row's id; null without tokens. */
  @Column('text', { name: 'sealed_tokens', nullable: true })
  sealedTokens: string | null;

  /** Null if the server did not name an expiry. */
  @Column({ type: 'timestamptz', name: 'expires_at', precision: 3, nullable: true })
  expiresAt: Date | null;

  @Column({ type: 'timestamptz', name: 'due_at', precision: 3, nullable: true })
  dueAt: Date | null;

  /** Counts the changes of the tokens: a process that waited for the row sees that another one refreshed it. */
  @Column('integer', { default: 1 })
  generation: number;

  @Column('text')
  state: (typeof credentialStates)[number];

  /** Null before the first refresh. */
  @Column({ type: 'timestamptz', name: 'refreshed_at', precision: 3, nullable: true })
  refreshedAt: Date | null;

  /** Consecutive refreshes without a response. */
  @Column('integer', { default: 0 })
  failures: number;

  /** Time before which no refresh begins; null after a success. */
  @Column({ type: 'timestamptz', name: 'retry_at', precision: 3, nullable: true })
  retryAt: Date | null;
}
