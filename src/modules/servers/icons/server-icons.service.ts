import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { onViolation } from '../../../platform/database/postgres-errors.js';
import { Egress } from '../../../platform/egress/egress.js';
import type { SuccessDto } from '../../../platform/http/success.dto.js';
import { ServerUrlsService } from '../server-urls.service.js';
import type { UploadedIconDto } from '../settings/server-settings.dto.js';
import { ServerNotFoundError } from '../servers.errors.js';
import type { ServerRef, QualifiedName } from '../server.types.js';
import { InvalidInputError, NotFoundError } from '../../../platform/errors/domain-error.js';
import { fetchIcon, type FoundIcon, iconTooLarge } from './icon-fetch.js';
import { ServerIcon } from './server-icon.entity.js';
import { ServerIconsRepository } from './server-icons.repository.js';

/** An icon as it is sent. */
export interface StoredIcon {
  bytes: Buffer;
  contentType: string;
  hash: string;
}

/** Stores icons that owners upload or servers name in `serverInfo`, and reads them. */
@Injectable()
export class ServerIconsService {
  constructor(
    @InjectRepository(ServerIcon) private readonly icons: Repository<ServerIcon>,
    private readonly rows: ServerIconsRepository,
    private readonly egress: Egress,
    private readonly urls: ServerUrlsService,
  ) {}

  /**
   * The icon of a server.
   *
   * @throws ServerNotFoundError, NotFoundError, TooLargeError when the only one is too large to be stored
   */
  async get(server: QualifiedName): Promise<StoredIcon> {
    const row = await this.rows.find(server);
    if (!row) throw new ServerNotFoundError();
    if (row.source === null) throw iconNotFound();
    const { bytes, contentType, hash } = row;
    if (!bytes || !contentType || !hash) throw iconTooLarge();
    return { bytes, contentType, hash };
  }

  /** Stores an uploaded icon in place of any other. @throws ServerNotFoundError */
  async upload(server: ServerRef, icon: FoundIcon): Promise<UploadedIconDto> {
    await this.icons
      .upsert({ ...rowOf(server.id, icon), source: 'upload' }, ['serverId'])
      .catch(onViolation({ foreignKey: () => new ServerNotFoundError() }));
    return { iconUrl: this.urls.uploadedIcon(server) };
  }

  /**
   * Fetches the image at a URL that the owner set, and stores it unless one was uploaded; null deletes it. Takes 5 s at
   * most.
   *
   * @throws InvalidInputError when there is no image, TooLargeError past 1 MB
   */
  async setUrl(serverId: string, url: string | null): Promise<void> {
    if (url === null) {
      await this.icons.delete({ serverId, source: 'upstream' });
      return;
    }
    const icon = await fetchIcon(this.egress, url);
    if (icon === 'too_large') throw iconTooLarge();
    if (icon === null) throw new InvalidInputError('iconUrl must lead to a PNG, JPEG, GIF, WebP or SVG image');
    await this.rows.saveUpstream(rowOf(serverId, icon));
  }

  /** Deletes the icon of either source. @throws NotFoundError */
  async remove({ id: serverId }: ServerRef): Promise<SuccessDto> {
    const { affected } = await this.icons.delete({ serverId });
    if (!affected) throw iconNotFound();
    return { success: true };
  }

  /**
   * Stores the icon a server names in `serverInfo.icons`, unless its owner uploaded one or set a URL, and deletes one it no
   * longer names. Fetches the first (5 s at most), so never call this inside a transaction. An icon that cannot be fetched
   * counts as none; only database errors are thrown.
   */
  async adopt(serverId: string, icons: unknown): Promise<void> {
    if (await this.rows.isChosen(serverId)) return;
    const entries: unknown[] = Array.isArray(icons) ? icons : [];
    const src = entries.map((entry) => (entry as { src?: unknown } | null)?.src).find((url) => typeof url === 'string');
    const icon = src === undefined ? null : await fetchIcon(this.egress, src);
    if (icon === null) {
      await this.icons.delete({ serverId, source: 'upstream' });
      return;
    }
    await this.rows.saveUpstream(rowOf(serverId, icon === 'too_large' ? null : icon));
  }
}

function iconNotFound(): NotFoundError {
  return new NotFoundError('Icon not found');
}

function rowOf(serverId: string, icon: FoundIcon | null): Omit<ServerIcon, 'source'> {
  const hash = icon && createHash('sha256').update(icon.bytes).digest('hex');
  return { serverId, bytes: icon?.bytes ?? null, contentType: icon?.type ?? null, hash, updatedAt: new Date() };
}
