import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository, type EntityManager } from 'typeorm';
import { pageOf, type PageQueryDto } from '../../../platform/http/pagination.dto.js';
import { ServerReleasesService } from '../../servers/server-releases.service.js';
import type { ServerRef, ServerSnapshot } from '../../servers/server.types.js';
import type { ContractVersionListDto } from './contract-changes.dto.js';
import { toContractVersionDto } from './contract-changes.mapper.js';
import { summaryOf } from './contract-change.js';
import { compareContracts, type ContractComparison } from './contract-comparison.js';
import { ReleaseContract } from './release-contract.entity.js';

/** Changes kept of one release; their paths and messages are at most some hundred characters. */
const CHANGES_MAX = 200;
const PATH_CHARS_MAX = 300;

/** Versions kept of one server; older ones are removed. */
const VERSIONS_MAX = 500;

/** Watches what servers offer: each time that becomes something else, what changed is kept. */
@Injectable()
export class ReleaseContracts {
  constructor(
    @InjectRepository(ReleaseContract) private readonly contracts: Repository<ReleaseContract>,
    private readonly servers: ServerReleasesService,
  ) {}

  /** What would change for callers if this were current. */
  async compare(serverId: string, snapshot: ServerSnapshot): Promise<ContractComparison> {
    return compareContracts(await this.servers.currentOf(serverId), snapshot);
  }

  /** Keeps it: part of the transaction that makes it so. */
  async record(
    { serverId, releaseId, foundBy }: Pick<ReleaseContract, 'serverId' | 'releaseId' | 'foundBy'>,
    { previousReleaseId, hash, changes }: ContractComparison,
    tx: EntityManager,
  ): Promise<void> {
    await tx.insert(ReleaseContract, {
      serverId,
      releaseId,
      previousReleaseId,
      foundBy,
      hash,
      summary: summaryOf(changes),
      changeCount: changes.length,
      changes: changes.slice(0, CHANGES_MAX).map((change) => ({
        ...change,
        path: change.path && change.path.slice(0, PATH_CHARS_MAX).toWellFormed(),
      })),
    });
    await tx.query(
      `DELETE FROM release_contracts WHERE server_id = $1 AND seq <= (
         SELECT seq FROM release_contracts WHERE server_id = $1 ORDER BY seq DESC OFFSET ${VERSIONS_MAX} LIMIT 1)`,
      [serverId],
    );
  }

  /** One page of what changed, newest first. */
  async list(server: ServerRef, query: PageQueryDto): Promise<ContractVersionListDto> {
    const where = { serverId: server.id };
    const { offset, pagination } = pageOf(query, await this.contracts.countBy(where));
    if (offset === null) return { versions: [], pagination };
    const rows = await this.contracts.find({ where, order: { seq: 'DESC' }, skip: offset, take: pagination.pageSize });
    return { versions: rows.map(toContractVersionDto), pagination };
  }
}
