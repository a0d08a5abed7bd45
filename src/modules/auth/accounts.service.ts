import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { type EntityManager, Repository } from 'typeorm';
import { transactionOf, type Actor } from '../../platform/database/actor.js';
import { onViolation } from '../../platform/database/postgres-errors.js';
import type { SuccessDto } from '../../platform/http/success.dto.js';
import { checkedBody } from '../../platform/http/input.pipe.js';
import { readPage } from '../../platform/http/pagination.dto.js';
import { ConflictError, InvalidInputError, NotFoundError } from '../../platform/errors/domain-error.js';
import {
  type AccountDto,
  type AccountListDto,
  type AccountsQueryDto,
  type CreateAccountDto,
  TimeZoneDto,
  type UpdateAccountDto,
  toAccountDto,
} from './account.dto.js';
import { AccessService } from './access.service.js';
import type { Caller } from './access.types.js';
import { Account } from './account.entity.js';
import { AccountLimitsService } from './account-limits.service.js';
import { AccountsRepository } from './accounts.repository.js';
import { ApiKeysRepository } from './api-keys.repository.js';
import { ApiKeysService } from './api-keys.service.js';
import { NotOperatorError } from './auth.errors.js';
import { REFUSALS } from './members.errors.js';
import { MembersRepository } from './members.repository.js';

/** A name that a user chooses: without invisible characters or look-alike letters of two scripts. */
export const ACCOUNT_NAME =
  /^(?=.{1,255}$)(?:[^\p{C}\p{sc=Cyrl}\p{sc=Grek}]+|[^\p{C}\p{sc=Latn}\p{sc=Grek}]+|[^\p{C}\p{sc=Latn}\p{sc=Cyrl}]+)$/u;

@Injectable()
export class AccountsService {
  constructor(
    @InjectRepository(Account) private readonly accountRepository: Repository<Account>,
    private readonly accountsRepository: AccountsRepository,
    private readonly accountLimitsService: AccountLimitsService,
    private readonly membersRepository: MembersRepository,
    private readonly apiKeysRepository: ApiKeysRepository,
    private readonly apiKeysService: ApiKeysService,
    private readonly accessService: AccessService,
  ) {}

  /**
   * Callers other than operators create organizations within their limit, and own them.
   *
   * @throws ConflictError when the name is taken; NotOperatorError, QuotaExceededError
   */
  async create(caller: Caller, { name, kind }: CreateAccountDto): Promise<AccountDto> {
    const { accountId, isOperator } = caller;
    const account = this.accountRepository.create({ name, kind });
    const toConflict = () => new ConflictError(`An account named "${name}" already exists`);
    const insert = () =>
      transactionOf(this.accountRepository, caller, async (tx) => {
        await tx.insert(Account, account);
        if (isOperator) return;
        const owner = { organizationId: account.id, accountId, role: 'owner', createdBy: accountId } as const;
        const stored = await this.membersRepository.set(caller, owner, false, tx);
        if (typeof stored === 'string') throw REFUSALS[stored]();
      }).catch(onViolation({ unique: toConflict }));
    if (!isOperator && kind !== 'organization') throw new NotOperatorError();
    await (isOperator
      ? insert()
      : this.accountLimitsService.createWithinQuota({ accountId }, { organizations: 1 }, insert));
    if (!isOperator) await this.apiKeysService.accountChanged(accountId);
    return toAccountDto(account);
  }

  createPerson(name: string, tx: EntityManager): Promise<string> {
    const text = name.normalize('NFKC').trim().slice(0, 200).toWellFormed();
    return this.accountsRepository.addPerson(ACCOUNT_NAME.test(text) ? text : 'user', tx);
  }

  async list(query: AccountsQueryDto): Promise<AccountListDto> {
    const { rows, pagination } = await readPage(query, this.accountsRepository.count(query), (page) =>
      this.accountsRepository.list(query, page.limit, page.offset),
    );
    return { accounts: rows, pagination };
  }

  /** @throws NotFoundError */
  async get(id: string): Promise<AccountDto> {
    const account = await this.accountRepository.findOneBy({ id });
    if (!account) throw new NotFoundError('Account not found');
    return toAccountDto(account);
  }

  /** @throws InvalidInputError, NotFoundError */
  async setTimeZone(caller: Actor & { accountId: string }, body: TimeZoneDto): Promise<AccountDto> {
    const { timeZone } = await checkedBody(TimeZoneDto, body);
    await this.accountRepository.update(caller.accountId, { timeZone });
    return this.get(caller.accountId);
  }

  /**
   * Changes an account. The keys of a disabled account are rejected, its streams and tunnels close, and its sessions and invitations are revoked permanently.
   *
   * @throws NotFoundError; ConflictError for disabling an operator, for making a disabled account an operator, and for the last operator;
   * InvalidInputError
   */
  async update(actor: Actor, id: string, { disabled, isOperator }: UpdateAccountDto): Promise<AccountDto> {
    if ((disabled === undefined) === (isOperator === undefined)) {
      throw new InvalidInputError('send either disabled or isOperator');
    }
    if (isOperator !== undefined && !(await this.apiKeysRepository.setOperator(actor, id, isOperator))) {
      await this.get(id);
      const last = 'The last operator stays one: make another account an operator first';
      throw new ConflictError(isOperator ? 'A disabled account cannot be an operator: enable it first' : last);
    }
    if (disabled !== undefined && !(await this.apiKeysRepository.setDisabled(actor, id, disabled))) {
      await this.get(id);
      throw new ConflictError('The account of an operator cannot be disabled');
    }
    await this.apiKeysService.accountChanged(id);
    return this.get(id);
  }

  /**
   * Deletes an account that owns nothing. Its keys, client authorizations, memberships and grants are deleted, and its streams and tunnels close.
   *
   * @throws NotFoundError; ConflictError naming what it owns, for the last owner of an organization, and for the last operator
   */
  async remove(actor: Actor, id: string): Promise<SuccessDto> {
    const names = await this.accessService.namespacesOf(id);
    const owning = () =>
      new ConflictError(
        `The account owns namespaces: ${names.slice(0, 10).join(', ')}${names.length > 10 ? ', …' : ''}. Transfer or delete them first`,
      );
    if (names.length > 0) throw owning();
    const removed = await this.apiKeysRepository.remove(actor, id).catch(onViolation({ foreignKey: owning }));
    if (removed === null) throw new NotFoundError('Account not found');
    if (removed === 'last operator') {
      throw new ConflictError('The last operator stays: make another account an operator first');
    }
    if ('lastOwnerOf' in removed) {
      throw new ConflictError(
        `The account is the last owner of ${removed.lastOwnerOf}: make another member an owner first`,
      );
    }
    for (const accountId of [id, ...removed.members]) await this.apiKeysService.accountChanged(accountId);
    return { success: true };
  }
}
