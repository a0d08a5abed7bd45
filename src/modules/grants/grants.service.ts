import { Injectable } from '@nestjs/common';
import { isUUID } from 'class-validator';
import type { EntityManager } from 'typeorm';
import { onViolation } from '../../platform/database/postgres-errors.js';
import { checkedBody } from '../../platform/http/input.pipe.js';
import { readPage, type PageQueryDto } from '../../platform/http/pagination.dto.js';
import type { SuccessDto } from '../../platform/http/success.dto.js';
import type { Caller, FoundGrant } from '../auth/access.types.js';
import { GrantCache } from './grant-cache.js';
import {
  SetGrantDto,
  toGivenGrantDto,
  toGrantDto,
  toListedGrantDto,
  toReceivedGrantDto,
  type GivenGrantListDto,
  type GrantDto,
  type GrantListDto,
  type ReceivedGrantListDto,
  type WithdrawGrantQueryDto,
} from './grant.dto.js';
import type { TargetName, TargetRef } from '../targets/target.types.js';
import { TargetsService } from '../targets/targets.service.js';
import { AccessService } from '../auth/access.service.js';
import { ConflictError, ForbiddenError, InvalidInputError, NotFoundError } from '../../platform/errors/domain-error.js';
import { NotGrantableError } from '../servers/servers.errors.js';
import { membersOnly } from './grants.docs.js';
import { GrantsRepository } from './grants.repository.js';

/** Maximum number of grants of each server, connection and namespace. */
const GRANTS_MAX = 100;

@Injectable()
export class GrantsService {
  constructor(
    private readonly grantsRepository: GrantsRepository,
    private readonly grantCache: GrantCache,
    private readonly accessService: AccessService,
    private readonly targetsService: TargetsService,
  ) {}

  /** Returns the terms of a grant from the values of a form. @throws InvalidInputError */
  checkBody(body: object): Promise<SetGrantDto> {
    return checkedBody(SetGrantDto, body);
  }

  /** Merges current grants; the result has the id of the strongest one, and is null without any. */
  findCurrent(accountId: string, target: TargetName): Promise<FoundGrant | null> {
    return this.grantsRepository.find(accountId, target);
  }

  /**
   * @param missing the error for a target that was deleted meanwhile
   * @param within the surrounding transaction; its caller announces the change after the commit
   * @throws NotFoundError for an unknown account; InvalidInputError for the owner and for contradictory terms; ConflictError at the
   * maximum; ForbiddenError when an editor grants to a non-member of the organization
   */
  async set(
    target: TargetRef,
    caller: Caller,
    { account: grantee, everyone, level, ...rest }: SetGrantDto,
    missing: () => Error,
    within?: EntityManager,
  ): Promise<{ created: boolean; grant: GrantDto }> {
    if (grantee !== undefined && everyone) {
      throw new InvalidInputError('account and everyone exclude each other: send one of them');
    }
    if (rest.tools && level !== 'call') {
      throw new InvalidInputError('tools needs the level "call": an account with "manage" can use every tool');
    }
    const expiresAt = rest.expiresAt === undefined ? null : new Date(rest.expiresAt);
    if (expiresAt && !(expiresAt.getTime() > Date.now()))
      throw new InvalidInputError('expiresAt must be in the future');
    const terms = { level, tools: rest.tools ? [...new Set(rest.tools.allow)] : null, expiresAt };
    const account = grantee === undefined ? null : await this.grantsRepository.findAccount(grantee);
    const unknown = () =>
      new NotFoundError('No account has this id or name: its owner finds both at GET /accounts/me').atField('account');
    if (grantee !== undefined && !account) throw unknown();
    const { ownerId, organizationId } = await this.rightOf(caller, target, missing);
    // eslint-disable-next-line no-restricted-syntax -- A question of ownership, not of access.
    if (account?.id === ownerId) throw new InvalidInputError('account owns this already: name another account');
    for (const server of await this.grantsRepository.serversBehind(target, account?.id ?? null)) {
      if (!this.accessService.isAllowed(caller, 'own', server)) throw new NotGrantableError(server.name);
    }
    const row = { subjectId: account?.id ?? null, ...terms, organizationId };
    const stored = await this.grantsRepository
      .set(caller, target, row, GRANTS_MAX, within)
      .catch(onViolation({ foreignKey: unknown }));
    if (stored === 'missing') throw missing();
    if (stored === 'outsider') throw new ForbiddenError(membersOnly.message);
    if (stored === 'full') {
      throw new ConflictError(`This target has ${GRANTS_MAX} grants, the maximum: revoke one first`);
    }
    if (!within) this.announce(target);
    const { created, id, createdAt } = stored;
    const { id: accountId, name: accountName } = account ?? { id: null, name: null };
    return { created, grant: toGrantDto({ id, accountId, accountName, ...terms, createdAt }) };
  }

  announce(target: TargetRef): void {
    this.grantCache.announce(target);
  }

  async list(target: TargetRef, query: PageQueryDto): Promise<GrantListDto> {
    const { rows, pagination } = await readPage(query, this.grantsRepository.count(target), (page) =>
      this.grantsRepository.list(target, page),
    );
    return { grants: rows.map(toListedGrantDto), pagination };
  }

  /**
   * Closes the streams and tunnels that the grant opened.
   *
   * @param now cancels calls that use it; otherwise they have 2 s to finish
   * @throws NotFoundError; ForbiddenError for an editor, if the grantee is not a member of the organization
   */
  async remove(
    target: TargetRef,
    caller: Caller,
    id: string,
    { now = false }: WithdrawGrantQueryDto,
  ): Promise<SuccessDto> {
    const missing = () => new NotFoundError('Grant not found');
    const { organizationId } = await this.rightOf(caller, target, missing);
    const deleted = await this.grantsRepository.delete(caller, target, id, organizationId);
    if (deleted === 'missing') throw missing();
    if (deleted === 'outsider') throw new ForbiddenError(membersOnly.message);
    this.grantCache.announce(target, now ? id : undefined);
    return { success: true };
  }

  async listReceived(accountId: string, query: PageQueryDto): Promise<ReceivedGrantListDto> {
    const { rows, pagination } = await readPage(query, this.grantsRepository.countReceived(accountId), (page) =>
      this.grantsRepository.listReceived(accountId, page),
    );
    return { grants: rows.map(toReceivedGrantDto), pagination };
  }

  async listGiven(ownerId: string, query: PageQueryDto): Promise<GivenGrantListDto> {
    const { rows, pagination } = await readPage(query, this.grantsRepository.countGiven(ownerId), (page) =>
      this.grantsRepository.listGiven(ownerId, page),
    );
    return { grants: rows.map(toGivenGrantDto), pagination };
  }

  /** @throws as {@link remove} */
  async removeGiven(ownerId: string, caller: Caller, id: string): Promise<SuccessDto> {
    const [row] = isUUID(id) ? await this.grantsRepository.listGiven(ownerId, { offset: 0, limit: 1 }, id) : [];
    if (!row) throw new NotFoundError('Grant not found');
    return this.remove({ kind: toGivenGrantDto(row).kind, id: row.targetId }, caller, id, {});
  }

  /**
   * Finds the organization to whose members the caller's grants are limited; null for anybody.
   *
   * @throws the error of `missing` for a target that was deleted meanwhile, or that the caller does not administer
   */
  private async rightOf(
    caller: Caller,
    target: TargetRef,
    missing: () => Error,
  ): Promise<{ ownerId: string; organizationId: string | null }> {
    const owned = await this.targetsService.findById(target);
    if (!owned || !this.accessService.isAllowed(caller, 'administer', owned)) throw missing();
    const { ownerId } = owned;
    return { ownerId, organizationId: this.accessService.isAllowed(caller, 'own', owned) ? null : ownerId };
  }
}
