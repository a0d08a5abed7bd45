import { ForeignKey, Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { Server } from '../../servers/server.entity.js';

/** Prefix of a failed check, followed by a digest of the findings. */
export const CHECK_FAILED = 'check ';

/** The rescan of a server. `holder` identifies the running scan, until `next_at`; its result is written only while the row names it. */
@Entity('server_rescans')
@Index('server_rescans_due', ['nextAt'])
@Index('server_rescans_asked', ['requestedAt'], { where: '"asked_at" IS NOT NULL' })
@Index('server_rescans_held', ['holder'], { where: '"holder" IS NOT NULL' })
export class ServerRescan {
  /** Id of the server. CASCADE: the row is deleted with its server. */
  @ForeignKey(() => Server, { name: 'server_rescans_server_fk', onDelete: 'CASCADE' })
  @PrimaryColumn('uuid', { name: 'server_id', primaryKeyConstraintName: 'server_rescans_pk' })
  serverId: string;

  /**
   * URL of a server that is scanned periodically; null if it changes only with releases, or needs removed credentials.
   */
  @Column('text', { name: 'upstream_url', nullable: true })
  upstreamUrl: string | null;

  /** Time of the next scan, or deadline of the running one; null for scans on request only. */
  @Column({ type: 'timestamptz', name: 'next_at', precision: 3, nullable: true })
  nextAt: Date | null;

  @Column({ type: 'timestamptz', name: 'asked_at', precision: 3, nullable: true })
  requestedAt: Date | null;

  /** Credentials, sealed by the vault for the release's id. */
  @Column('text', { name: 'sealed_credentials', nullable: true })
  sealedCredentials: string | null;

  @Column('uuid', { nullable: true })
  holder: string | null;

  /** Consecutive failed scans. */
  @Column('integer', { default: 0 })
  failures: number;

  /**
   * The problem that the log already reports, such as {@link CHECK_FAILED}, so that it is logged once; null without
   * one.
   */
  @Column('text', { name: 'told', nullable: true })
  reported: string | null;
}
