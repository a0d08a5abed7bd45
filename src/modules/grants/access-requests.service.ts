/**
 * Requests for access to servers that an account can find: at most one open request for each account and server. A caller who can grant
 * decides it by a grant; one who can manage the server can reject it with a message.
 *
 * Fails: 429 for the 21st request of an account within a day, 409 for the owner's own server and for a decided request.
 */
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import { onViolation } from '../../platform/database/postgres-errors.js';
import { ConflictError, InvalidInputError, NotFoundError, TooManyError } from '../../platform/errors/domain-error.js';
import { readPage, type PageQueryDto } from '../../platform/http/pagination.dto.js';
import type { Caller } from '../auth/access.types.js';
import { GrantLevelError } from '../auth/auth.errors.js';
import { ServerAccessService } from '../servers/server-access.service.js';
import type { ServerRef } from '../servers/server.types.js';
import { ServerNotFoundError } from '../servers/servers.errors.js';
import {
  toAccessRequestDto,
  type AccessRequestDto,
  type AccessRequestListDto,
  type DecideAccessRequestDto,
} from './access-request.dto.js';
import { AccessRequestsRepository, type RequestsOf } from './access-requests.repository.js';
import { GrantsService } from './grants.service.js';

const REQUESTS_PER_DAY_MAX = 20;

@Injectable()
export class AccessRequestsService {
  constructor(
    @InjectDataSource() private readonly database: DataSource,
    private readonly accessRequestsRepository: AccessRequestsRepository,
    private readonly grantsService: GrantsService,
    private readonly serverAccessService: ServerAccessService,
  ) {}

  /**
   * @returns the open request of the account if there is one, with `created` false
   * @throws ConflictError for its own server, TooManyError, ServerNotFoundError
   */
  async requestAccess(
    { accountId }: Pick<Caller, 'accountId'>,
    { id: serverId, ownerId }: Pick<ServerRef, 'id' | 'ownerId'>,
    text: string,
  ): Promise<{ created: boolean; request: AccessRequestDto }> {
    // eslint-disable-next-line no-restricted-syntax -- A question of ownership, not of access.
    if (ownerId === accountId) throw new ConflictError('The server is your own: you need no access to it');
    const accessRequest = await this.accessRequestsRepository
      .openRequest(accountId, serverId, text, REQUESTS_PER_DAY_MAX)
      .catch(onViolation({ foreignKey: () => new ServerNotFoundError() }));
    if (!accessRequest) {
      throw new TooManyError(
        `Your account has asked for access ${REQUESTS_PER_DAY_MAX} times within a day: ask again tomorrow`,
        3_600,
      );
    }
    return { created: accessRequest.created, request: await this.get(accessRequest.id, serverId) };
  }

  /** Lists requests, newest first. */
  async list(of: RequestsOf, query: PageQueryDto): Promise<AccessRequestListDto> {
    const { rows, pagination } = await readPage(query, this.accessRequestsRepository.count(of), (page) =>
      this.accessRequestsRepository.list(of, page),
    );
    return { requests: rows.map(toAccessRequestDto), pagination };
  }

  /**
   * @throws NotFoundError; ConflictError when the request was already decided or the server has too many grants; InvalidInputError;
   * GrantLevelError for a grant by a caller who only manages the server
   */
  async decide(
    server: ServerRef,
    id: string,
    caller: Caller,
    { grant, refuse }: DecideAccessRequestDto,
  ): Promise<AccessRequestDto> {
    if ((grant === undefined) === (refuse === undefined)) {
      throw new InvalidInputError('send either grant or refuse');
    }
    if (refuse !== undefined && !/^(?=.*\S)[^\p{Cc}\p{Cs}]{1,500}$/u.test(refuse)) {
      throw new InvalidInputError('refuse must be a message of 1 to 500 characters, without line ends');
    }
    if (grant && !(await this.serverAccessService.isAllowed(caller, 'administer', server)))
      throw new GrantLevelError('manage', 'administer');
    const { account } = await this.get(id, server.id);
    const decidedBy = caller.accountId;
    const target = { kind: 'server', id: server.id } as const;
    await this.database.transaction(async (tx) => {
      let grantId: string | null = null;
      if (grant) {
        const terms = { ...grant, account: account.id };
        grantId = (await this.grantsService.set(target, caller, terms, () => new ServerNotFoundError(), tx)).grant.id;
      }
      if (!(await this.accessRequestsRepository.decide(id, { decidedBy, answer: refuse ?? null, grantId }, tx))) {
        throw new ConflictError('The request was decided before');
      }
    });
    if (grant) this.grantsService.announce(target);
    return this.get(id, server.id);
  }

  private async get(id: string, serverId: string): Promise<AccessRequestDto> {
    const row = await this.accessRequestsRepository.find(id, serverId);
    if (!row) throw new NotFoundError('Access request not found');
    return toAccessRequestDto(row);
  }
}
