import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import type { QualifiedName } from './qualified-name.js';
import type { ServerDetailDto } from './server.dto.js';
import { ServerCardsService } from './server-cards.service.js';
import { Server } from './server.entity.js';
import { ServerUrlsService } from './server-urls.service.js';
import { toServerDetailDto, type DetailRow } from './server.mapper.js';
import { ServerNotFoundError } from './servers.errors.js';

/** A server as everybody may read it. */
@Injectable()
export class ServerDetailsService {
  constructor(
    @InjectRepository(Server) private readonly servers: Repository<Server>,
    private readonly links: ServerUrlsService,
    private readonly cards: ServerCardsService,
  ) {}

  /** Unlisted ones too: they are hidden from lists only. @throws ServerNotFoundError */
  async get(qualified: QualifiedName): Promise<ServerDetailDto> {
    const [row] = await this.servers.query<(DetailRow & { id: string })[]>(
      `SELECT s.id, s.display_name AS "displayName", s.description, s.slug, s.snapshot, s.scan_passed AS "scanPassed",
              s.icon_url AS "iconUrl", i.source AS "iconSource"
         FROM servers s JOIN namespaces n ON n.id = s.namespace_id
         LEFT JOIN server_icons i ON i.server_id = s.id AND i.hash IS NOT NULL
        WHERE n.name = $1 AND s.name = $2`,
      [qualified.namespace, qualified.name],
    );
    if (!row) throw new ServerNotFoundError();
    const added = await this.cards.read([row.id]);
    return { ...toServerDetailDto(qualified, row, this.links), ...added(row.id) };
  }
}
