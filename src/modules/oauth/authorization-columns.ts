import { Column, CreateDateColumn, PrimaryGeneratedColumn } from 'typeorm';
import type { AuthorizationServer } from '../../mcp/oauth/discovery.js';
import type { CredentialOwner } from './credentials.types.js';

export abstract class AuthorizationColumns {
  @PrimaryGeneratedColumn('uuid')
  id: string;

  @Column('text', { name: 'owner_kind' })
  ownerKind: CredentialOwner['kind'];

  @Column('uuid', { name: 'owner_id' })
  ownerId: string;

  /** URL of the upstream, the only address to which the tokens are sent. */
  @Column('text', { name: 'upstream_url' })
  upstreamUrl: string;

  /** Authorization server, the only one to which refresh tokens are sent. */
  @Column('jsonb')
  server: AuthorizationServer;

  /** The `resource` of every request, byte for byte; empty for a server that rejects the parameter. */
  @Column('text')
  resource: string;

  /** The granted scopes, else the requested ones; null if neither is known. */
  @Column('text', { nullable: true })
  scopes: string | null;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz', precision: 3 })
  createdAt: Date;
}
