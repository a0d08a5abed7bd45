import { Check, Column, CreateDateColumn, Entity, Index, PrimaryGeneratedColumn } from 'typeorm';
import { ownerKinds, type CredentialOwner } from './credentials.types.js';

/**
 * An OAuth client of Slipway at one authorization server, with one redirect URI. A pre-registered one (`given`) belongs to
 * one server or connection, is used for no other, and is deleted with it by a trigger, as credentials are.
 */
@Entity('oauth_clients')
@Index('oauth_clients_issuer', ['issuer', 'redirectUri'], {
  unique: true,
  where: '"owner_id" IS NULL AND "retired_at" IS NULL',
})
@Index('oauth_clients_owner', ['ownerKind', 'ownerId', 'issuer', 'redirectUri'], {
  unique: true,
  where: '"owner_id" IS NOT NULL',
})
@Check('oauth_clients_kind', `"kind" IN ('document', 'registered', 'given')`)
@Check('oauth_clients_owner_kind', `"owner_kind" IN (${ownerKinds.map((kind) => `'${kind}'`).join(', ')})`)
@Check(
  'oauth_clients_given',
  `("owner_kind" IS NOT NULL) = ("kind" = 'given') AND ("owner_id" IS NOT NULL) = ("kind" = 'given')`,
)
export class OAuthClient {
  @PrimaryGeneratedColumn('uuid')
  id: string;

  /** Issuer, spelt as in the metadata of the authorization server. */
  @Column('text')
  issuer: string;

  @Column('text', { name: 'redirect_uri' })
  redirectUri: string;

  /** `document`: the client id is the URL of our metadata document. `registered`: dynamic registration. `given`: registered manually. */
  @Column('text')
  kind: 'document' | 'registered' | 'given';

  /** Null for a client that all owners share. */
  @Column('text', { name: 'owner_kind', nullable: true })
  ownerKind: CredentialOwner['kind'] | null;

  @Column('uuid', { name: 'owner_id', nullable: true })
  ownerId: string | null;

  @Column('text', { name: 'client_id' })
  clientId: string;

  /** Secret, encrypted by the vault for this row's id; null for a client without one. */
  @Column('text', { name: 'sealed_secret', nullable: true })
  sealedSecret: string | null;

  @Column('text', { name: 'auth_method', nullable: true })
  authMethod: string | null;

  /** Null for a secret that does not expire. */
  @Column({ type: 'timestamptz', name: 'secret_expires_at', precision: 3, nullable: true })
  secretExpiresAt: Date | null;

  /** Time at which the server rejected a pre-registered client, which is then no longer used; null before. */
  @Column({ type: 'timestamptz', name: 'refused_at', precision: 3, nullable: true })
  refusedAt: Date | null;

  /** Time at which a new registration replaced the client, since its server seemed to have forgotten it; null before. */
  @Column({ type: 'timestamptz', name: 'retired_at', precision: 3, nullable: true })
  retiredAt: Date | null;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz', precision: 3 })
  createdAt: Date;
}
