import { Check, Column, CreateDateColumn, Entity, Index, JoinColumn, ManyToOne, PrimaryGeneratedColumn } from 'typeorm';
import type { Relation } from 'typeorm';
import type { AuthorizationServer } from '../../mcp/oauth/discovery.js';
import { ownerKinds, type CredentialOwner } from './credentials.types.js';
import { OAuthClient } from './oauth-client.entity.js';

/** `required`: the tokens are no longer good, and are gone. */
export const credentialStates = ['active', 'required'] as const;

/**
 * What opens one upstream for one server or connection. It goes with its owner: triggers on `servers` and `connections`,
 * hand-written in the migration, since a column cannot point at two tables.
 */
@Entity('upstream_credentials')
@Index('upstream_credentials_owner', ['ownerKind', 'ownerId'], { unique: true })
@Index('upstream_credentials_client', ['clientRowId'])
@Index('upstream_credentials_due', ['dueAt'])
@Check('upstream_credentials_owner_kind', `"owner_kind" IN (${ownerKinds.map((kind) => `'${kind}'`).join(', ')})`)
@Check('upstream_credentials_state', `"state" IN (${credentialStates.map((state) => `'${state}'`).join(', ')})`)
export class UpstreamCredential {
  @PrimaryGeneratedColumn('uuid')
  id: string;

  @Column('text', { name: 'owner_kind' })
  ownerKind: CredentialOwner['kind'];

  @Column('uuid', { name: 'owner_id' })
  ownerId: string;

  /** The only address the tokens are sent to. */
  @Column('text', { name: 'upstream_url' })
  upstreamUrl: string;

  /** The authorization server that gave the tokens; they are shown to no other. */
  @Column('jsonb')
  server: AuthorizationServer;

  @Column('uuid', { name: 'client_row_id', nullable: true })
  clientRowId: string | null;

  /** SET NULL: a client that its server forgot takes the way to new tokens along, not the tokens that still work. */
  @ManyToOne(() => OAuthClient, { nullable: true, onDelete: 'SET NULL' })
  @JoinColumn({ name: 'client_row_id', foreignKeyConstraintName: 'upstream_credentials_client_fk' })
  client: Relation<OAuthClient> | null;

  /** The `resource` of every token request, byte for byte. */
  @Column('text')
  resource: string;

  /** What was granted, else what was asked for; null when neither is known. */
  @Column('text', { nullable: true })
  scopes: string | null;

  /** `{accessToken, refreshToken}`, sealed by the vault for this row's id; null when there are none. */
  @Column('text', { name: 'sealed_tokens', nullable: true })
  sealedTokens: string | null;

  /** When the access token ends; null when the server did not say. */
  @Column({ type: 'timestamptz', name: 'expires_at', precision: 3, nullable: true })
  expiresAt: Date | null;

  /** When it should be renewed. */
  @Column({ type: 'timestamptz', name: 'due_at', precision: 3, nullable: true })
  dueAt: Date | null;

  /** Grows with every change of the tokens: who waited for the row sees that somebody else was faster. */
  @Column('integer', { default: 1 })
  generation: number;

  @Column('text')
  state: (typeof credentialStates)[number];

  /** The last successful refresh; null since the authorization. */
  @Column({ type: 'timestamptz', name: 'refreshed_at', precision: 3, nullable: true })
  refreshedAt: Date | null;

  /** Refreshes in a row that could not be carried out. */
  @Column('integer', { default: 0 })
  failures: number;

  /** Not asked again before; null when nothing is wrong. */
  @Column({ type: 'timestamptz', name: 'retry_at', precision: 3, nullable: true })
  retryAt: Date | null;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz', precision: 3 })
  createdAt: Date;
}
