import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import type { QualifiedName } from '../server.types.js';
import type { IconSource, ServerIcon } from './server-icon.entity.js';

/** The icon of a server; every column is null without one. */
export interface IconRow {
  source: IconSource | null;
  bytes: Buffer | null;
  contentType: string | null;
  hash: string | null;
}

@Injectable()
export class ServerIconsRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /** Returns null without the server. */
  async find({ namespace, name }: QualifiedName): Promise<IconRow | null> {
    const [row] = await this.database.query<IconRow[]>(
      `SELECT i.source, i.content_type AS "contentType", i.hash, i.bytes
         FROM servers s JOIN namespaces n ON n.id = s.namespace_id LEFT JOIN server_icons i ON i.server_id = s.id
        WHERE n.name = $1 AND lower(s.name) = lower($2)`,
      [namespace, name],
    );
    return row ?? null;
  }

  /** Returns true if the owner uploaded an icon or set the URL of one. */
  async isChosen(serverId: string): Promise<boolean> {
    const rows = await this.database.query<unknown[]>(
      `SELECT 1 FROM servers s LEFT JOIN server_icons i ON i.server_id = s.id
        WHERE s.id = $1 AND (s.icon_url IS NOT NULL OR i.source = 'upload')`,
      [serverId],
    );
    return rows.length > 0;
  }

  /** Stores the server's own icon, unless the owner uploaded one. Does nothing without the server. */
  async saveUpstream(icon: Omit<ServerIcon, 'source'>): Promise<void> {
    await this.database.query(
      `INSERT INTO server_icons (server_id, source, bytes, content_type, hash, updated_at)
       SELECT id, 'upstream', $2, $3, $4, $5 FROM servers WHERE id = $1
       ON CONFLICT (server_id) DO UPDATE SET bytes = EXCLUDED.bytes, content_type = EXCLUDED.content_type,
         hash = EXCLUDED.hash, updated_at = EXCLUDED.updated_at WHERE server_icons.source = 'upstream'`,
      [icon.serverId, icon.bytes, icon.contentType, icon.hash, icon.updatedAt],
    );
  }
}
