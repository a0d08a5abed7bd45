import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { LessThanOrEqual, Repository, type EntityManager } from 'typeorm';
import { readPage, type PageQueryDto } from '../../../platform/http/pagination.dto.js';
import { ServerReleasesService } from '../../servers/server-releases.service.js';
import type { ServerRef, ServerSnapshot } from '../../servers/server.types.js';
import { summaryOf } from './contract-change.js';
import type { ContractVersionListDto } from './contract-changes.dto.js';
import { compareContracts, type ContractComparison } from './contract-diff.js';
import { ReleaseContract } from './release-contract.entity.js';

const CHANGES_MAX = 200;
const PATH_CHARS_MAX = 300;

const VERSIONS_MAX = 500;

@Injectable()
export class ReleaseContracts {
  constructor(
    @InjectRepository(ReleaseContract) private readonly releaseContractRepository: Repository<ReleaseContract>,
    private readonly serverReleasesService: ServerReleasesService,
  ) {}

  async compare(serverId: string, snapshot: ServerSnapshot): Promise<ContractComparison> {
    return compareContracts(await this.serverReleasesService.currentOf(serverId), snapshot);
  }

  /** Records a contract within the transaction that makes the version current. */
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
      changes: changes
        .slice(0, CHANGES_MAX)
        .map((change) => ({ ...change, path: change.path && change.path.slice(0, PATH_CHARS_MAX).toWellFormed() })),
    });
    const [newestExpired] = await tx.find(ReleaseContract, {
      where: { serverId },
      order: { seq: 'DESC' },
      select: { seq: true },
      skip: VERSIONS_MAX,
      take: 1,
    });
    if (newestExpired) await tx.delete(ReleaseContract, { serverId, seq: LessThanOrEqual(newestExpired.seq) });
  }

  /** Lists the newest versions first. */
  async list(server: ServerRef, query: PageQueryDto): Promise<ContractVersionListDto> {
    const where = { serverId: server.id };
    const { rows, pagination } = await readPage(query, this.releaseContractRepository.countBy(where), (page) =>
      this.releaseContractRepository.find({ where, order: { seq: 'DESC' }, skip: page.offset, take: page.limit }),
    );
    const versions = rows.map(({ releaseId, previousReleaseId, foundBy, at, hash, summary, changeCount, changes }) => {
      const fields = { releaseId, previousReleaseId, foundBy, hash, summary, changeCount, changes };
      return { ...fields, at: at.toISOString() };
    });
    return { versions, pagination };
  }
}
