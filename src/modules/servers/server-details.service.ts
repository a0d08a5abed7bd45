import { Injectable } from '@nestjs/common';
import type { QualifiedName } from './qualified-name.js';
import type { ServerDetailDto } from './server.dto.js';
import { ServerCardsService } from './server-cards.service.js';
import { ServerUrlsService } from './server-urls.service.js';
import { toServerDetailDto } from './server.mapper.js';
import { ServerNotFoundError } from './servers.errors.js';
import { ServersRepository } from './servers.repository.js';

/** Reads the public record of a server. */
@Injectable()
export class ServerDetailsService {
  constructor(
    private readonly servers: ServersRepository,
    private readonly urls: ServerUrlsService,
    private readonly cards: ServerCardsService,
  ) {}

  /** Reads a server, listed or not. @throws ServerNotFoundError */
  async get(qualified: QualifiedName): Promise<ServerDetailDto> {
    const row = await this.servers.findDetail(qualified);
    if (!row) throw new ServerNotFoundError();
    const added = await this.cards.read([row.id]);
    return { ...toServerDetailDto(qualified, row, this.urls), ...added(row.id) };
  }
}
