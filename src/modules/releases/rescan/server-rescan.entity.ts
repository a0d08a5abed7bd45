import { Column, Entity, Index, JoinColumn, OneToOne, PrimaryColumn } from 'typeorm';
import type { Relation } from 'typeorm';
import { Server } from '../../servers/server.entity.js';

/** Begins what is told of a failed security check; a digest of what it found follows. */
export const CHECK_FAILED = 'check ';

/**
 * When the current release of a server is scanned again, and what came of it the last time. There is one row for each
 * server that has a current release. URLs may be too long for a tree, so their index is a hash, written by hand.
 *
 * Whoever scans is named by `holder` until `next_at`; what it found counts only while it is.
 */
@Entity('server_rescans')
@Index('server_rescans_due', ['nextAt'])
@Index('server_rescans_asked', ['askedAt'], { where: '"asked_at" IS NOT NULL' })
@Index('server_rescans_held', ['holder'], { where: '"holder" IS NOT NULL' })
@Index('server_rescans_upstream', { synchronize: false })
export class ServerRescan {
  @PrimaryColumn('uuid', { name: 'server_id', primaryKeyConstraintName: 'server_rescans_pk' })
  serverId: string;

  /** CASCADE: nobody scans a server that is gone. */
  @OneToOne(() => Server, { nullable: false, onDelete: 'CASCADE' })
  @JoinColumn({ name: 'server_id', foreignKeyConstraintName: 'server_rescans_server_fk' })
  server: Relation<Server>;

  /** What is scanned without being asked for; null for what does not change by itself, or not for us to see. */
  @Column('text', { name: 'upstream_url', nullable: true })
  upstreamUrl: string | null;

  /** The next scan, or until when one may take; null when there is none unless somebody asks. */
  @Column({ type: 'timestamptz', name: 'next_at', precision: 3, nullable: true })
  nextAt: Date | null;

  /** When somebody asked for a scan that is not done yet. */
  @Column({ type: 'timestamptz', name: 'asked_at', precision: 3, nullable: true })
  askedAt: Date | null;

  /** Scan credentials for the scan that was asked for, sealed by the vault for the release's id. */
  @Column('text', { name: 'sealed_credentials', nullable: true })
  sealedCredentials: string | null;

  @Column('uuid', { nullable: true })
  holder: string | null;

  /** How many scans in a row found nothing out. */
  @Column('integer', { default: 0 })
  failures: number;

  /** The trouble the log was told of, so that it is told once, such as {@link CHECK_FAILED}; null while there is none. */
  @Column('text', { nullable: true })
  told: string | null;
}
