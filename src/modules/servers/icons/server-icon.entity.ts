import { Check, Column, Entity, JoinColumn, OneToOne, PrimaryColumn } from 'typeorm';
import type { Relation } from 'typeorm';
import { Server } from '../server.entity.js';

/** The source of an icon: an upload of its owner, or the server's `serverInfo`. */
export type IconSource = 'upload' | 'upstream';

/** The image of a server. */
@Entity('server_icons')
@Check('server_icons_source', `"source" IN ('upload', 'upstream')`)
export class ServerIcon {
  @PrimaryColumn('uuid', { name: 'server_id' })
  serverId: string;

  /** CASCADE: the icon goes with its server (Spec 4.11). */
  @OneToOne(() => Server, { nullable: false, onDelete: 'CASCADE' })
  @JoinColumn({ name: 'server_id', foreignKeyConstraintName: 'server_icons_server_fk' })
  server: Relation<Server>;

  @Column('text')
  source: IconSource;

  /** Null if the server names an icon that is too large to be stored. */
  @Column('bytea', { nullable: true, select: false })
  bytes: Buffer | null;

  /** The detected type; null without bytes. */
  @Column('text', { name: 'content_type', nullable: true })
  contentType: string | null;

  /** SHA-256 of the bytes in hex; null without bytes. */
  @Column('text', { nullable: true })
  hash: string | null;

  @Column({ type: 'timestamptz', name: 'updated_at', precision: 3, default: () => 'now()' })
  updatedAt: Date;
}
