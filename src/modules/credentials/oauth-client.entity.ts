import { Check, Column, CreateDateColumn, Entity, Index, PrimaryGeneratedColumn } from 'typeorm';

/** Us at one authorization server. Never used at another one, nor with another redirect address. */
@Entity('oauth_clients')
@Index('oauth_clients_issuer', ['issuer', 'redirectUri'], { unique: true })
@Check('oauth_clients_kind', `"kind" IN ('document', 'registered')`)
export class OAuthClientRow {
  @PrimaryGeneratedColumn('uuid')
  id: string;

  /** As its metadata spells it. */
  @Column('text')
  issuer: string;

  @Column('text', { name: 'redirect_uri' })
  redirectUri: string;

  /** `document`: the id is the URL of our metadata document. `registered`: the server made the id. */
  @Column('text')
  kind: 'document' | 'registered';

  @Column('text', { name: 'client_id' })
  clientId: string;

  /** Sealed by the vault for this row's id; null for a client without a secret. Never leaves the service. */
  @Column('text', { name: 'sealed_secret', nullable: true })
  sealedSecret: string | null;

  @Column('text', { name: 'auth_method', nullable: true })
  authMethod: string | null;

  /** Null when the secret does not end. */
  @Column({ type: 'timestamptz', name: 'secret_expires_at', precision: 3, nullable: true })
  secretExpiresAt: Date | null;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz', precision: 3 })
  createdAt: Date;
}
