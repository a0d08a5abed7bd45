/**
 * How a module counts what an account stores. A repository carries `@AccountQuotas({ counts, owners })`;
 * `AccountLimitsRepository` collects these at start, so that the lowest module names no table of a higher one.
 *
 * - `counts`: SQL of a number for a limit of `config/account-limits.ts`, of account `a` or of namespace `$1`.
 * - `owners`: SQL of the account that owns a thing with the id `$1`.
 *
 * A limit or an owner that no module of the process adds fails the request that asks for it.
 */
import { DiscoveryService } from '@nestjs/core';
import type { AccountLimitName } from '../../config/account-limits.js';

/** The account that a quota is of: named, or the owner of something. */
export type QuotaOwner =
  | Record<'accountId', string>
  | Record<'namespaceId', string>
  | Record<'releaseId', string>
  | Record<'connectionId', string>;

/** The SQL that a module adds. */
interface QuotaSql {
  counts?: Partial<Record<AccountLimitName, string>>;
  owners?: Record<string, string>;
}

/** Metadata of a repository, by which `AccountLimitsRepository` finds it. */
export const AccountQuotas = DiscoveryService.createDecorator<QuotaSql>();
