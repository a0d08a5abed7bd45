import { Check, Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** The stored era of an endpoint, so that other processes and restarts need no probe. */
@Entity('upstream_eras')
@Index('upstream_eras_expiry', ['expiresAt'])
@Check('upstream_eras_kind', `"kind" IN ('modern', 'both', 'streamable', 'sse')`)
export class UpstreamEra {
  /** SHA-256 of the URL in base64url: URLs can contain credentials in their query. */
  @PrimaryColumn('text')
  endpoint: string;

  @Column('text')
  kind: string;

  @Column('text')
  reason: string;

  @Column('timestamptz', { name: 'learned_at' })
  learnedAt: Date;

  @Column('timestamptz', { name: 'expires_at' })
  expiresAt: Date;
}
