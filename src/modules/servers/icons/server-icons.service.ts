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
import { fetchFirstIcon, fetchIcon, type FoundIcon, iconTooLarge } from './icon-fetch.js';
import { ServerIcon } from './server-icon.entity.js';
import { ServerIconsRepository } from './server-icons.repository.js';

export interface StoredIcon {
  bytes: Buffer;
  contentType: string;
  hash: string;
}

@Injectable()
export class ServerIconsService {
  constructor(
    @InjectRepository(ServerIcon) private readonly serverIconRepository: Repository<ServerIcon>,
    private readonly serverIconsRepository: ServerIconsRepository,
    private readonly egress: Egress,
    private readonly serverUrlsService: ServerUrlsService,
  ) {}

  /** @throws ServerNotFoundError, NotFoundError; TooLargeError when the only icon is too large to be stored */
  async get(server: QualifiedName): Promise<StoredIcon> {
    const row = await this.serverIconsRepository.find(server);
    if (!row) throw new ServerNotFoundError();
    if (row.source === null) throw iconNotFound();
    const { bytes, contentType, hash } = row;
    if (!bytes || !contentType || !hash) throw iconTooLarge();
    return { bytes, contentType, hash };
  }

  /** Replaces any other icon. @throws ServerNotFoundError */
  async upload(server: ServerRef, icon: FoundIcon): Promise<UploadedIconDto> {
    await this.serverIconRepository
      .upsert({ ...rowOf(server.id, icon), source: 'upload' }, ['serverId'])
      .catch(onViolation({ foreignKey: () => new ServerNotFoundError() }));
    return { iconUrl: this.serverUrlsService.uploadedIcon(server) };
  }

  /**
   * Fetches and stores the image, unless one was uploaded; null deletes it. Takes at most 5 s.
   *
   * @throws InvalidInputError when there is no image, TooLargeError over 1 MB
   */
  async setUrl(serverId: string, url: string | null): Promise<void> {
    if (url === null) {
      await this.serverIconRepository.delete({ serverId, source: 'upstream' });
      return;
    }
    const icon = await fetchIcon(this.egress, url);
    if (icon === 'too_large') throw iconTooLarge();
    if (icon === null) throw new InvalidInputError('iconUrl must lead to a PNG, JPEG, GIF, WebP or SVG image');
    await this.serverIconsRepository.saveUpstream(rowOf(serverId, icon));
  }

  /** Removes the icon, whatever its source. @throws NotFoundError */
  async remove({ id: serverId }: ServerRef): Promise<SuccessDto> {
    const { affected } = await this.serverIconRepository.delete({ serverId });
    if (!affected) throw iconNotFound();
    return { success: true };
  }

  /**
   * Does nothing if the owner uploaded an icon or set a URL; deletes the stored icon if the server no longer names any.
   * Fetches for up to 10 s, so never call this inside a transaction. If no icon can be fetched, the stored one stays;
   * throws only database errors.
   *
   * @param base address of the MCP server, for relative addresses; null without one
   */
  async adopt(serverId: string, icons: unknown, base: string | null = null): Promise<void> {
    if (await this.serverIconsRepository.isChosen(serverId)) return;
    const icon = await fetchFirstIcon(this.egress, icons, base);
    if (icon === 'none') await this.serverIconRepository.delete({ serverId, source: 'upstream' });
    else if (icon !== null)
      await this.serverIconsRepository.saveUpstream(rowOf(serverId, icon === 'too_large' ? null : icon));
  }
}

function iconNotFound(): NotFoundError {
  return new NotFoundError('Icon not found');
}

function rowOf(serverId: string, icon: FoundIcon | null): Omit<ServerIcon, 'source'> {
  const hash = icon && createHash('sha256').update(icon.bytes).digest('hex');
  return { serverId, bytes: icon?.bytes ?? null, contentType: icon?.type ?? null, hash, updatedAt: new Date() };
}
