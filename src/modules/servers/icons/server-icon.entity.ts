import { ForeignKey, Check, Column, Entity, PrimaryColumn } from 'typeorm';
import { Server } from '../server.entity.js';

export type IconSource = 'upload' | 'upstream';

@Entity('server_icons')
@Check('server_icons_source', `"source" IN ('upload', 'upstream')`)
export class ServerIcon {
  /** Id of the server, with which the row is deleted (Spec 4.11). */
  @ForeignKey(() => Server, { name: 'server_icons_server_fk', onDelete: 'CASCADE' })
  @PrimaryColumn('uuid', { name: 'server_id' })
  serverId: string;

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
