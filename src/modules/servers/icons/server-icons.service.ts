import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { isForeignKeyViolation } from '../../../platform/database/postgres-errors.js';
import { Egress } from '../../../platform/egress/egress.js';
import type { SuccessDto } from '../../../platform/http/success.dto.js';
import type { OwnedNamespace } from '../../auth/access.types.js';
import { fetchIcon, type FoundIcon } from './icon-fetch.js';
import type { QualifiedName } from '../qualified-name.js';
import { ServerIcon } from './server-icon.entity.js';
import { ServerUrlsService } from '../server-urls.service.js';
import type { UploadedIconDto } from '../settings/server-settings.dto.js';
import { IconNotFoundError, IconTooLargeError, ServerNotFoundError } from '../servers.errors.js';

/** An icon as it is sent. */
export interface KeptIcon {
  bytes: Buffer;
  contentType: string;
  hash: string;
}

/** Icons: uploaded by owners, adopted from what servers say of themselves, sent to whoever asks. */
@Injectable()
export class ServerIconsService {
  constructor(
    @InjectRepository(ServerIcon) private readonly icons: Repository<ServerIcon>,
    private readonly egress: Egress,
    private readonly links: ServerUrlsService,
  ) {}

  /**
   * The icon of a server; two reads at most, the second only of bytes the caller does not have.
   *
   * @param knownHash of the bytes the caller has already; `bytes` is empty then
   * @throws ServerNotFoundError, IconNotFoundError, IconTooLargeError when the only one is too large to be kept
   */
  async get({ namespace, name }: QualifiedName, knownHash: string | null): Promise<KeptIcon> {
    const [row] = await this.icons.query<(Partial<KeptIcon> & { source: string | null })[]>(
      `SELECT i.source, i.content_type AS "contentType", i.hash, CASE WHEN i.hash = $3 THEN '' ELSE i.bytes END AS bytes
         FROM servers s JOIN namespaces n ON n.id = s.namespace_id LEFT JOIN server_icons i ON i.server_id = s.id
        WHERE n.name = $1 AND s.name = $2`,
      [namespace, name, knownHash],
    );
    if (!row) throw new ServerNotFoundError();
    if (row.source === null) throw new IconNotFoundError();
    const { bytes, contentType, hash } = row;
    if (!bytes || !contentType || !hash) throw new IconTooLargeError();
    return { bytes, contentType, hash };
  }

  /**
   * Keeps an uploaded icon in place of any other.
   *
   * @param read reads the upload, once it is known that there is a server for it
   * @throws ServerNotFoundError; what `read` throws
   */
  async upload(namespace: OwnedNamespace, name: string, read: () => Promise<FoundIcon>): Promise<UploadedIconDto> {
    const serverId = await this.ownServerId(namespace, name);
    const row = rowOf(serverId, await read());
    try {
      await this.icons.upsert({ ...row, source: 'upload' }, ['serverId']);
    } catch (error) {
      if (isForeignKeyViolation(error)) throw new ServerNotFoundError();
      throw error;
    }
    return { iconUrl: this.links.uploadedIcon({ namespace: namespace.name, name }) };
  }

  /** Forgets the icon, whoever brought it. @throws ServerNotFoundError, IconNotFoundError */
  async remove(namespace: OwnedNamespace, name: string): Promise<SuccessDto> {
    const { affected } = await this.icons.delete({ serverId: await this.ownServerId(namespace, name) });
    if (!affected) throw new IconNotFoundError();
    return { success: true };
  }

  /**
   * Keeps the icon a server names in what it says of itself (`serverInfo.icons`), unless one was uploaded; one it no longer
   * names goes. Fetches it (15 s at most), so never inside a transaction. An icon that cannot be had is none: only the
   * database makes this fail.
   */
  async adopt(serverId: string, given: unknown): Promise<void> {
    if (await this.icons.existsBy({ serverId, source: 'upload' })) return;
    const icon = await fetchIcon(this.egress, given);
    if (icon === null) {
      await this.icons.delete({ serverId, source: 'upstream' });
      return;
    }
    const row = rowOf(serverId, icon === 'too_large' ? null : icon);
    // One statement: an icon that is uploaded at this moment wins.
    await this.icons.query(
      `INSERT INTO server_icons (server_id, source, bytes, content_type, hash, updated_at)
       SELECT id, 'upstream', $2, $3, $4, $5 FROM servers WHERE id = $1
       ON CONFLICT (server_id) DO UPDATE SET bytes = EXCLUDED.bytes, content_type = EXCLUDED.content_type,
         hash = EXCLUDED.hash, updated_at = EXCLUDED.updated_at WHERE server_icons.source = 'upstream'`,
      [row.serverId, row.bytes, row.contentType, row.hash, row.updatedAt],
    );
  }

  private async ownServerId(namespace: OwnedNamespace, name: string): Promise<string> {
    const [row] = await this.icons.query<{ id: string }[]>(
      'SELECT id FROM servers WHERE namespace_id = $1 AND name = $2',
      [namespace.id, name],
    );
    if (!row) throw new ServerNotFoundError();
    return row.id;
  }
}

function rowOf(serverId: string, icon: FoundIcon | null): Omit<ServerIcon, 'server' | 'source'> {
  const hash = icon && createHash('sha256').update(icon.bytes).digest('hex');
  return { serverId, bytes: icon?.bytes ?? null, contentType: icon?.type ?? null, hash, updatedAt: new Date() };
}
