import { Injectable } from '@nestjs/common';
import { onViolation } from '../../platform/database/postgres-errors.js';
import { STORABLE } from '../../platform/http/input-values.js';
import { pageOf, type PageQueryDto } from '../../platform/http/pagination.dto.js';
import type { SuccessDto } from '../../platform/http/success.dto.js';
import type { Caller } from '../auth/access.types.js';
import { GrantCache } from './grant-cache.js';
import {
  toGrantDto,
  toReceivedGrantDto,
  type GrantDto,
  type GrantListDto,
  type ReceivedGrantListDto,
  type SetGrantDto,
  type WithdrawGrantQueryDto,
} from './grant.dto.js';
import type { GrantTarget } from './grant.types.js';
import { ConflictError, InvalidInputError, NotFoundError } from '../../platform/errors/domain-error.js';
import { GrantsRepository } from './grants.repository.js';

/** Grants that a server or a connection may have. */
const GRANTS_MAX = 100;

/** Grants single servers and connections to other accounts, lists the grants and withdraws them. */
@Injectable()
export class GrantsService {
  constructor(
    private readonly rows: GrantsRepository,
    private readonly cache: GrantCache,
  ) {}

  /** The id of the row of a connection; null when there is none. */
  async findConnection(namespaceId: string, connectionId: string): Promise<string | null> {
    return STORABLE.test(connectionId) ? this.rows.findConnection(namespaceId, connectionId) : null;
  }

  /**
   * Grants a target to an account, or changes the level that it was granted at.
   *
   * @param missing the error for a target that was deleted meanwhile
   * @throws NotFoundError for an unknown account, InvalidInputError for the caller's own, ConflictError for one grant too many
   */
  async set(
    target: GrantTarget,
    { accountId: createdBy }: Caller,
    { account: named, level }: SetGrantDto,
    missing: () => Error,
  ): Promise<{ created: boolean; grant: GrantDto }> {
    const account = await this.rows.findAccount(named);
    const unknown = () => new NotFoundError('No account has this id or name: its owner finds both at GET /accounts/me');
    if (!account) throw unknown();
    if (account.id === createdBy) {
      throw new InvalidInputError('account is your own, which owns this already: name another account');
    }
    const stored = await this.rows
      .set(target, { subjectId: account.id, level, createdBy }, GRANTS_MAX)
      .catch(onViolation({ foreignKey: unknown }));
    if (stored === 'missing') throw missing();
    if (stored === 'full') {
      throw new ConflictError(
        `This has ${GRANTS_MAX} grants, as many as a server or a connection may have: withdraw one first`,
      );
    }
    this.cache.announce(target);
    const { created, id, createdAt } = stored;
    return { created, grant: toGrantDto({ id, accountId: account.id, accountName: account.name, level, createdAt }) };
  }

  /** One page of the grants of a target, newest first. */
  async list(target: GrantTarget, query: PageQueryDto): Promise<GrantListDto> {
    const { offset, pagination } = pageOf(query, await this.rows.count(target));
    const rows = offset === null ? [] : await this.rows.list(target, { offset, limit: pagination.pageSize });
    return { grants: rows.map(toGrantDto), pagination };
  }

  /**
   * Withdraws a grant, and ends its streams and tunnels: at once in this process, within 5 s in every other.
   *
   * @param now cuts the calls that run by it; otherwise they are answered
   * @throws NotFoundError
   */
  async remove(target: GrantTarget, id: string, { now = false }: WithdrawGrantQueryDto): Promise<SuccessDto> {
    if (!(await this.rows.delete(target, id))) throw new NotFoundError('Grant not found');
    this.cache.announce(target, now ? id : undefined);
    return { success: true };
  }

  /** One page of what was granted to an account, newest first. */
  async listReceived(accountId: string, query: PageQueryDto): Promise<ReceivedGrantListDto> {
    const { offset, pagination } = pageOf(query, await this.rows.countReceived(accountId));
    const rows = offset === null ? [] : await this.rows.listReceived(accountId, { offset, limit: pagination.pageSize });
    return { grants: rows.map(toReceivedGrantDto), pagination };
  }
}
