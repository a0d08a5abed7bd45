import { timingSafeEqual } from 'node:crypto';
import { Injectable, type OnApplicationBootstrap, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { LessThan, Repository } from 'typeorm';
import { RowCache } from '../../platform/database/row-cache.js';
import { WriteBehind } from '../../platform/database/write-behind.js';
import { onViolation } from '../../platform/database/postgres-errors.js';
import { InvalidInputError } from '../../platform/errors/domain-error.js';
import { HeldByKeys } from '../../platform/http/held-by-keys.js';
import { PubSub } from '../../platform/queue/pub-sub.js';
import { repeat } from '../../platform/schedule/repeat.js';
import { Schedule } from '../../platform/schedule/schedule.js';
import { AccountLimitsService } from './account-limits.service.js';
import { ANONYMOUS, type Caller } from './access.types.js';
import { ApiKey } from './account.entity.js';
import { parseScope } from './may.js';
import { generateApiKey, hashApiKey, isApiKey, prefixOf } from './api-key.js';
import { ApiKeysRepository } from './api-keys.repository.js';
import { toApiKeyDto, type ApiKeyListDto, type CreateApiKeyDto, type CreatedApiKeyDto } from './account.dto.js';
import { AccountNotFoundError, ApiKeyNotFoundError, UnauthenticatedError } from './auth.errors.js';

declare module '../../platform/queue/pub-sub.js' {
  interface Topics {
    /** Published when an API key was revoked. */
    'auth.key-revoked': { keyId: string };
  }
}

/** A revoked key must stop working everywhere within 5 s, also if the message about it is lost. */
const CACHE_MS = 5_000;
const CACHED_KEYS_MAX = 10_000;

/** Interval at which the keys of open streams are checked: with the query, streams end within 5 s. */
const HELD_CHECK_MS = 3_000;

/** Expired keys stay listed for this long, so that their owners see why requests fail. */
const EXPIRED_KEPT_DAYS = 30;

interface KnownKey {
  caller: Caller;
  expiresAt: Date | null;
}

/** Issues, checks and revokes API keys. */
@Injectable()
export class ApiKeysService implements OnModuleInit, OnApplicationBootstrap, OnApplicationShutdown {
  private readonly known = new RowCache<KnownKey>((hash) => this.load(Buffer.from(hash, 'hex')), {
    max: CACHED_KEYS_MAX,
    ttlMs: CACHE_MS,
  });
  /**
   * Hashes of the valid keys that were used in the last 5 s, by the key in clear text: SHA-256 of each request takes 6 µs.
   * Only says which row of {@link known} to read, so a revoked key is refused whether its hash is here or not.
   */
  private readonly hashes = new Map<string, string>();
  private readonly forgetHashes = repeat(CACHE_MS, () => this.hashes.clear());
  private readonly used = new WriteBehind<string, Date>('api-keys', (batch) => this.rows.saveLastUsed(batch));

  constructor(
    @InjectRepository(ApiKey) private readonly keys: Repository<ApiKey>,
    private readonly rows: ApiKeysRepository,
    private readonly pubSub: PubSub,
    private readonly limits: AccountLimitsService,
    private readonly held: HeldByKeys,
    private readonly schedule: Schedule,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.pubSub.subscribe('auth.key-revoked', ({ keyId }) => this.forget(keyId));
  }

  onApplicationBootstrap(): void {
    this.schedule.every('check of the keys of open streams', HELD_CHECK_MS, () => this.checkHeld());
  }

  async onApplicationShutdown(): Promise<void> {
    this.forgetHashes.stop();
    await this.used.onApplicationShutdown();
  }

  /**
   * The caller who owns a key. Cached for 5 s; a promise for a key that is not cached.
   *
   * @throws UnauthenticatedError
   */
  verify(key: string): Caller | Promise<Caller> {
    const remembered = this.hashes.get(key);
    if (remembered === undefined && !isApiKey(key)) throw UnauthenticatedError.invalid();
    const hash = remembered ?? hashApiKey(key).toString('hex');
    const cached = this.known.peek(hash);
    if (cached) return this.use(key, hash, cached);
    return this.known.get(hash).then((row) => {
      if (!row) throw UnauthenticatedError.invalid();
      return this.use(key, hash, row);
    });
  }

  /**
   * Creates a key. Only this answer holds it in clear text.
   *
   * @throws AccountNotFoundError, QuotaExceededError, InvalidInputError for an expiry that is not in the future
   */
  async create(accountId: string, { name, expiresAt }: CreateApiKeyDto): Promise<CreatedApiKeyDto> {
    const key = generateApiKey();
    const row = this.keys.create({
      accountId,
      name,
      prefix: prefixOf(key),
      hash: hashApiKey(key),
      expiresAt: futureMoment(expiresAt ?? null),
    });
    await this.limits
      .within({ accountId }, { apiKeys: 1 }, () => this.keys.insert(row))
      .catch(onViolation({ foreignKey: () => new AccountNotFoundError() }));
    return { ...toApiKeyDto(row), key };
  }

  /** The account's keys, newest first, without their clear text. */
  async list(accountId: string): Promise<ApiKeyListDto> {
    const rows = await this.keys.find({ where: { accountId }, order: { createdAt: 'DESC', id: 'DESC' } });
    return { apiKeys: rows.map(toApiKeyDto) };
  }

  /** The name of a key; null for one that was revoked. */
  async nameOf(id: string): Promise<string | null> {
    const key = await this.keys.findOne({ where: { id }, select: { id: true, name: true } });
    return key?.name ?? null;
  }

  /**
   * Revokes a key, and ends its streams and tunnels: at once in this process, within 5 s in every other.
   *
   * @throws ApiKeyNotFoundError
   */
  async revoke(accountId: string, keyId: string): Promise<void> {
    const { affected } = await this.keys.delete({ id: keyId, accountId });
    if (!affected) throw new ApiKeyNotFoundError();
    this.forget(keyId);
    this.pubSub.publish('auth.key-revoked', { keyId });
  }

  /** Removes keys that expired more than 30 days ago. Returns how many. */
  async purgeExpired(): Promise<number> {
    const before = new Date(Date.now() - EXPIRED_KEPT_DAYS * 24 * 60 * 60 * 1000);
    const { affected } = await this.keys.delete({ expiresAt: LessThan(before) });
    return affected ?? 0;
  }

  /** The caller of a key that exists. @throws UnauthenticatedError when it has expired */
  private use(key: string, hash: string, { caller, expiresAt }: KnownKey): Caller {
    if (expiresAt && expiresAt.getTime() <= Date.now()) throw UnauthenticatedError.expired();
    this.hashes.set(key, hash);
    this.used.set(caller.keyId, new Date());
    return caller;
  }

  private async load(hash: Buffer): Promise<KnownKey | null> {
    const row = await this.rows.findByHash(hash);
    if (!row || !timingSafeEqual(row.hash, hash)) return null;
    const { accountId, id: keyId, isOperator, overrides, expiresAt } = row;
    // A scope of a later version gives no right here.
    const scopes = row.scopes?.flatMap((scope) => parseScope(scope) ?? []) ?? null;
    return { caller: { accountId, keyId, isOperator, scopes, limits: this.limits.of(overrides) }, expiresAt };
  }

  /** Ends what is held open by keys that have expired, or were revoked while the message about it was lost. */
  private async checkHeld(): Promise<void> {
    const keyIds = this.held.keyIds.filter((id) => id !== ANONYMOUS.keyId);
    if (keyIds.length === 0) return;
    const valid = await this.rows.validAmong(keyIds);
    for (const id of keyIds) if (!valid.has(id)) this.forget(id);
  }

  private forget(keyId: string): void {
    this.held.end(keyId);
    this.known.dropWhere(({ caller }) => caller.keyId === keyId);
    this.used.delete(keyId);
  }
}

/** @throws InvalidInputError also for ISO 8601 forms that `Date` does not parse (weeks, days of the year) */
function futureMoment(text: string | null): Date | null {
  if (text === null) return null;
  const moment = new Date(text);
  if (!(moment.getTime() > Date.now())) throw new InvalidInputError('expiresAt must be a date and time in the future');
  return moment;
}
