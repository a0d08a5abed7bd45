import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { isUniqueViolation } from '../../platform/database/postgres-errors.js';
import { pageOf } from '../../platform/http/pagination.dto.js';
import type { PageQueryDto } from '../../platform/http/pagination.dto.js';
import type { AccountDto, AccountListDto, CreateAccountDto } from './account.dto.js';
import { Account } from './account.entity.js';
import { toAccountDto } from './account.dto.js';
import { AccountExistsError, AccountNotFoundError } from './auth.errors.js';

/** Creates and lists accounts, for the operator. */
@Injectable()
export class AccountsService {
  constructor(@InjectRepository(Account) private readonly accounts: Repository<Account>) {}

  /** @throws AccountExistsError */
  async create({ name, kind }: CreateAccountDto): Promise<AccountDto> {
    const account = this.accounts.create({ name, kind });
    try {
      await this.accounts.insert(account);
    } catch (error) {
      if (isUniqueViolation(error)) throw new AccountExistsError(name);
      throw error;
    }
    return toAccountDto(account);
  }

  /** One page of the accounts, newest first. */
  async list(query: PageQueryDto): Promise<AccountListDto> {
    const { offset, pagination } = pageOf(query, await this.accounts.count());
    const rows =
      offset === null
        ? []
        : await this.accounts.find({
            order: { createdAt: 'DESC', id: 'DESC' },
            skip: offset,
            take: pagination.pageSize,
          });
    return { accounts: rows.map(toAccountDto), pagination };
  }

  /** @throws AccountNotFoundError */
  async get(id: string): Promise<AccountDto> {
    const account = await this.accounts.findOneBy({ id });
    if (!account) throw new AccountNotFoundError();
    return toAccountDto(account);
  }
}
