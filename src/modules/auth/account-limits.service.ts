import { Injectable } from '@nestjs/common';
import {
  accountLimitNames,
  isLimitValue,
  type AccountLimitName,
  type AccountLimits,
} from '../../config/account-limits.js';
import { Env } from '../../config/env.js';
import { onViolation } from '../../platform/database/postgres-errors.js';
import { InvalidInputError } from '../../platform/errors/domain-error.js';
import { growingLru } from '../../platform/limits/growing-lru.js';
import type { AccountUsageDto } from './account.dto.js';
import {
  AccountLimitsRepository,
  accountQuotas,
  type QuotaName,
  type QuotaOwner,
} from './account-limits.repository.js';
import { AccountNotFoundError, QuotaExceededError } from './auth.errors.js';

/** By how much quotas grow. */
type Growth = Partial<Record<QuotaName, number>>;

/**
 * Bounds of what an owner may create after a count without another count: this many creations within this time, and of each
 * quota this share of what is left. The last creations below a limit are all counted.
 */
const UNCOUNTED_MAX = 20;
const UNCOUNTED_MS = 1_000;
const UNCOUNTED_SHARE = 1 / 16;

/** Limits of accounts: defaults from the settings, and those that the operator sets for single accounts. */
@Injectable()
export class AccountLimitsService {
  /** The last creation of each owner that runs in this process. */
  private readonly creating = new Map<string, Promise<unknown>>();
  /** Creations and growth that need no count, by owner and quotas. */
  private readonly uncounted = growingLru<{ creations: number; growth: Growth }>(1_000, { ttl: UNCOUNTED_MS });

  constructor(
    private readonly rows: AccountLimitsRepository,
    private readonly env: Env,
  ) {}

  /** The limits of an account. */
  async of(accountId: string): Promise<AccountLimits> {
    return this.merged((await this.rows.usage({ accountId }, []))?.overrides ?? null);
  }

  /** The account that owns a program, and how many of its programs may run in one process; null for a deleted program. */
  async programQuota(owner: QuotaOwner): Promise<{ accountId: string; max: number } | null> {
    const stored = await this.rows.usage(owner, []);
    return stored && { accountId: stored.accountId, max: this.merged(stored.overrides).livePrograms };
  }

  /** The limits of an account, and what it uses of them now. @throws AccountNotFoundError */
  async usage(accountId: string): Promise<AccountUsageDto> {
    const stored = await this.rows.usage({ accountId }, accountQuotas);
    if (!stored) throw new AccountNotFoundError();
    const limits = this.merged(stored.overrides);
    return {
      limits: accountLimitNames.map((name) => ({ name, used: stored.used[name] ?? null, limit: limits[name] })),
    };
  }

  /**
   * Sets limits of an account. Those of requests are used within 5 s.
   *
   * @param changes by name; null returns a limit to its default
   * @throws InvalidInputError, AccountNotFoundError
   */
  async set(accountId: string, changes: Record<string, unknown>): Promise<AccountUsageDto> {
    for (const [name, value] of Object.entries(changes)) {
      if (!(accountLimitNames as string[]).includes(name)) {
        throw new InvalidInputError(`"${name}" is no limit: the limits are ${accountLimitNames.join(', ')}`);
      }
      if (value !== null && !isLimitValue(value)) {
        throw new InvalidInputError(`${name} must be a whole number from 0, or null for the default`);
      }
    }
    const missing = () => new AccountNotFoundError();
    await this.rows
      .set(accountId, changes as Partial<Record<AccountLimitName, number | null>>)
      .catch(onViolation({ foreignKey: missing }));
    this.uncounted.clear();
    return this.usage(accountId);
  }

  /**
   * Creates something that counts. Creations of one owner are counted one after another in this process, so that concurrent
   * ones do not exceed the limit together. Far from the limit only some are counted, since a count costs as much as a third
   * of a creation. Together these and other processes exceed a limit by a few.
   *
   * @param added by how much each quota grows
   * @throws QuotaExceededError, and what `create` throws
   */
  async within<T>(owner: QuotaOwner, added: Growth, create: () => Promise<T>): Promise<T> {
    const [id] = Object.values(owner) as [string];
    const key = `${id} ${Object.keys(added).join()}`;
    if (this.isUncounted(key, added)) return create();
    const previous = this.creating.get(id);
    const created = (previous ?? Promise.resolve()).then(async () => {
      if (!this.isUncounted(key, added)) {
        const growth = await this.require(owner, added);
        for (const name of Object.keys(growth) as QuotaName[]) growth[name] = (growth[name] ?? 0) * UNCOUNTED_SHARE;
        this.uncounted.set(key, { creations: UNCOUNTED_MAX, growth });
      }
      return create();
    });
    const ended = created.catch(() => undefined);
    this.creating.set(id, ended);
    void ended.then(() => {
      if (this.creating.get(id) === ended) this.creating.delete(id);
    });
    return created;
  }

  /** Checks that quotas may grow. @returns by how much they may grow after that @throws QuotaExceededError */
  async require(owner: QuotaOwner, added: Growth): Promise<Growth> {
    const names = Object.keys(added) as QuotaName[];
    const stored = await this.rows.usage(owner, names);
    const left: Growth = {};
    if (!stored) return left;
    const limits = this.merged(stored.overrides);
    for (const name of names) {
      const used = stored.used[name] ?? 0;
      left[name] = limits[name] - used - (added[name] ?? 0);
      if (left[name] < 0) throw new QuotaExceededError(name, used, limits[name]);
    }
    return left;
  }

  /** Takes a creation from those that need no count. @returns false when it must be counted */
  private isUncounted(key: string, added: Growth): boolean {
    const left = this.uncounted.get(key);
    const names = Object.keys(added) as QuotaName[];
    const by = (name: QuotaName) => added[name] ?? 0;
    if (!left || left.creations === 0 || names.some((name) => by(name) > (left.growth[name] ?? 0))) return false;
    left.creations -= 1;
    for (const name of names) left.growth[name] = (left.growth[name] ?? 0) - by(name);
    return true;
  }

  private merged(overrides: Partial<AccountLimits> | null): AccountLimits {
    return overrides ? { ...this.env.accountLimits, ...overrides } : this.env.accountLimits;
  }
}
