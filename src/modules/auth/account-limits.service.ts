import { Injectable } from '@nestjs/common';
import type { Actor } from '../../platform/database/actor.js';
import {
  accountLimitNames,
  isLimitValue,
  type AccountLimitName,
  type AccountLimits,
} from '../../config/account-limits.js';
import type { EntityManager } from 'typeorm';
import { Env } from '../../config/env.js';
import { onViolation } from '../../platform/database/postgres-errors.js';
import { InvalidInputError, NotFoundError } from '../../platform/errors/domain-error.js';
import type { AccountUsageDto } from './account.dto.js';
import { AccountLimitsRepository } from './account-limits.repository.js';
import type { QuotaOwner } from './account-quota.decorator.js';
import { QuotaExceededError } from './auth.errors.js';

type Growth = Partial<AccountLimits>;

/** Limits of accounts: defaults from the settings, and those that the operator sets for single accounts. */
@Injectable()
export class AccountLimitsService {
  private readonly creating = new Map<string, Promise<unknown>>();

  constructor(
    private readonly accountLimitsRepository: AccountLimitsRepository,
    private readonly env: Env,
  ) {}

  limitsOf(overrides: Partial<AccountLimits> | null): AccountLimits {
    return overrides ? { ...this.env.accountLimits, ...overrides } : this.env.accountLimits;
  }

  /** @returns null for a deleted program */
  async programQuota(owner: QuotaOwner): Promise<{ accountId: string; max: number } | null> {
    const stored = await this.accountLimitsRepository.usage(owner, []);
    return stored && { accountId: stored.accountId, max: this.limitsOf(stored.overrides).livePrograms };
  }

  /** @throws NotFoundError */
  async usage(accountId: string): Promise<AccountUsageDto> {
    const stored = await this.accountLimitsRepository.usage({ accountId }, this.accountLimitsRepository.accountQuotas);
    if (!stored) throw new NotFoundError('Account not found');
    const limits = this.limitsOf(stored.overrides);
    return {
      limits: accountLimitNames.map((name) => ({ name, used: stored.used[name] ?? null, limit: limits[name] })),
    };
  }

  /**
   * Sets limits. Limits of requests take effect within 5 s.
   *
   * @param changes by name; null resets a limit to its default
   * @throws InvalidInputError, NotFoundError
   */
  async set(actor: Actor, accountId: string, changes: Record<string, unknown>): Promise<AccountUsageDto> {
    for (const [name, value] of Object.entries(changes)) {
      if (!(accountLimitNames as string[]).includes(name)) {
        throw new InvalidInputError(`"${name}" is not a limit: the limits are ${accountLimitNames.join(', ')}`);
      }
      if (value !== null && !isLimitValue(value)) {
        throw new InvalidInputError(`${name} must be a whole number from 0, or null for the default`);
      }
    }
    const missing = () => new NotFoundError('Account not found');
    await this.accountLimitsRepository
      .set(actor, accountId, changes as Partial<Record<AccountLimitName, number | null>>)
      .catch(onViolation({ foreignKey: missing }));
    return this.usage(accountId);
  }

  /**
   * Creates a record that a quota counts. Creations of one owner run one after another in this process, so that concurrent ones cannot
   * exceed the limit together; other processes can each add one.
   *
   * @param added by how much each quota grows
   * @throws QuotaExceededError, and what `create` throws
   */
  async createWithinQuota<T>(owner: QuotaOwner, added: Growth, create: () => Promise<T>): Promise<T> {
    const [id] = Object.values(owner) as [string];
    const previous = this.creating.get(id);
    const created = (previous ?? Promise.resolve()).then(async () => {
      await this.require(owner, added);
      return create();
    });
    const ended = created.catch(() => undefined);
    this.creating.set(id, ended);
    void ended.then(() => {
      if (this.creating.get(id) === ended) this.creating.delete(id);
    });
    return created;
  }

  /**
   * Checks that quotas can grow. The default of `logBytesPerDay` applies only when all accounts together have written the log of a day.
   *
   * @param within the transaction that stores the record
   * @throws QuotaExceededError
   */
  async require(owner: QuotaOwner, added: Growth, within?: EntityManager): Promise<void> {
    const names = Object.keys(added) as AccountLimitName[];
    const stored = await this.accountLimitsRepository.usage(owner, names, within);
    if (!stored) return;
    const limits = this.limitsOf(stored.overrides);
    for (const name of names) {
      const used = stored.used[name] ?? 0;
      if (used + (added[name] ?? 0) <= limits[name]) continue;
      const isShare = name === 'logBytesPerDay' && stored.overrides?.logBytesPerDay === undefined;
      if (isShare && (await this.accountLimitsRepository.logBytesToday()) < this.env.sharedLogBytesPerDay) continue;
      throw new QuotaExceededError(name, used, limits[name]);
    }
  }
}
