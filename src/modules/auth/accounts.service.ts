import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { onViolation } from '../../platform/database/postgres-errors.js';
import { pageOf, type PageQueryDto } from '../../platform/http/pagination.dto.js';
import { ConflictError, NotFoundError } from '../../platform/errors/domain-error.js';
import {
  type AccountDto,
  type AccountListDto,
  type CreateAccountDto,
  type UpdateAccountDto,
  toAccountDto,
} from './account.dto.js';
import { Account } from './account.entity.js';
import { ApiKeysRepository } from './api-keys.repository.js';
import { ApiKeysService } from './api-keys.service.js';

/** Creates, lists, disables and enables accounts, for the operator. */
@Injectable()
export class AccountsService {
  constructor(
    @InjectRepository(Account) private readonly accounts: Repository<Account>,
    private readonly rows: ApiKeysRepository,
    private readonly keys: ApiKeysService,
  ) {}

  /** @throws ConflictError when the name is taken */
  async create({ name, kind }: CreateAccountDto): Promise<AccountDto> {
    const account = this.accounts.create({ name, kind });
    const taken = () => new ConflictError(`An account named "${name}" already exists`);
    await this.accounts.insert(account).catch(onViolation({ unique: taken }));
    return toAccountDto(account);
  }

  /** One page of the accounts, newest first. */
  async list(query: PageQueryDto): Promise<AccountListDto> {
    const { offset, pagination } = pageOf(query, await this.accounts.count());
    if (offset === null) return { accounts: [], pagination };
    const order = { createdAt: 'DESC', id: 'DESC' } as const;
    const rows = await this.accounts.find({ order, skip: offset, take: pagination.pageSize });
    return { accounts: rows.map(toAccountDto), pagination };
  }

  /** @throws NotFoundError */
  async get(id: string): Promise<AccountDto> {
    const account = await this.accounts.findOneBy({ id });
    if (!account) throw new NotFoundError('Account not found');
    return toAccountDto(account);
  }

  /**
   * Disables an account or enables it again. The keys of a disabled one are refused, and what they hold open ends: at once in
   * this process, within 5 s in every other. Its sessions and invitations end for good.
   *
   * @throws NotFoundError, ConflictError for an operator
   */
  async update(id: string, { disabled }: UpdateAccountDto): Promise<AccountDto> {
    if (!(await this.rows.setDisabled(id, disabled))) {
      await this.get(id);
      throw new ConflictError('The account of an operator cannot be disabled');
    }
    await this.keys.accountChanged(id);
    return this.get(id);
  }
}
