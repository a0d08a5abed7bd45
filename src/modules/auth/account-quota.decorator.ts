/**
 * How a module counts what an account stores: a repository carries `@AccountQuotas({ counts, owners })`, which `AccountLimitsRepository`
 * collects at startup. A request that needs a limit or owner that no module provides fails.
 *
 * - `counts`: SQL of a number for a limit of `config/account-limits.ts`, of account `a` or of namespace `$1`.
 * - `owners`: SQL of the account that owns the record with the id `$1`.
 */
import { DiscoveryService } from '@nestjs/core';
import type { AccountLimitName } from '../../config/account-limits.js';

export type QuotaOwner =
  | Record<'accountId', string>
  | Record<'namespaceId', string>
  | Record<'releaseId', string>
  | Record<'connectionId', string>;

interface QuotaSql {
  counts?: Partial<Record<AccountLimitName, string>>;
  owners?: Record<string, string>;
}

export const AccountQuotas = DiscoveryService.createDecorator<QuotaSql>();
