import { timingSafeEqual } from 'node:crypto';
import { Injectable, type OnApplicationBootstrap, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { InjectRepository } from '@nestjs/typeorm';
import { LessThan, Repository, type EntityManager } from 'typeorm';
import { transactionOf } from '../../platform/database/actor.js';
import { Env } from '../../config/env.js';
import { RowCache } from '../../platform/database/row-cache.js';
import { WriteBehind } from '../../platform/database/write-behind.js';
import { onViolation } from '../../platform/database/postgres-errors.js';
import { ConflictError, ForbiddenError, InvalidInputError, NotFoundError } from '../../platform/errors/domain-error.js';
import { clientAddress, type RequestOrigin } from '../../platform/http/client-address.js';
import { RevocationRegistry } from '../../platform/http/revocation-registry.js';
import { partOf } from '../../platform/parts.js';
import { PubSub } from '../../platform/queue/pub-sub.js';
import { repeat } from '../../platform/schedule/repeat.js';
import { Schedule } from '../../platform/schedule/schedule.js';
import { AccountLimitsService } from './account-limits.service.js';
import {
  ANONYMOUS,
  callerFor,
  type Caller,
  type Memberships,
  type Person,
  SessionSource,
  TokenSource,
} from './access.types.js';
import { ApiKey } from './account.entity.js';
import { covers, formatScope, isWithin, parseScopes, readScopes, scopeInWords } from './may.js';
import { generateApiKey, hashApiKey, isApiKey, prefixOf } from './api-key.js';
import { readMemberships } from './memberships.access.js';
import { ApiKeysRepository } from './api-keys.repository.js';
import {
  toAccountDto,
  toApiKeyDto,
  type AccessDto,
  type ApiKeyListDto,
  type CreateApiKeyDto,
  type CreatedApiKeyDto,
  type RevokeApiKeyQueryDto,
  type RotateApiKeyDto,
} from './account.dto.js';
import { UnauthenticatedError } from './auth.errors.js';

declare module '../../platform/queue/pub-sub.js' {
  interface Topics {
    /** Published when an API key was revoked. `now`: cancels its running calls. */
    'auth.key-revoked': { keyId: string; now?: boolean };
    'auth.account-changed': { accountId: string };
  }
}

/** A revoked key must stop working everywhere within 5 s, even if the message about it is lost. */
const CACHE_MS = 5_000;

/** Including the query, streams close within 5 s. */
const HELD_CHECK_MS = 3_000;

/** Number of days for which expired keys stay listed, so that their owners see why requests fail. */
const EXPIRED_KEPT_DAYS = 30;

/**
 * Stored creators of a key: for a longer chain of rotations, the first and the newest half, so that creating many keys cannot push a leaked
 * key out of the first half.
 */
const MAKERS_MAX = 100;

interface KnownKey {
  caller: Caller;
  expiresAt: Date | null;
  isDisabled: boolean;
  isSuspended: boolean;
}

@Injectable()
export class ApiKeysService implements OnModuleInit, OnApplicationBootstrap, OnApplicationShutdown {
  private readonly cachedKeys = new RowCache<KnownKey>((hash) => this.load(Buffer.from(hash, 'hex')));
  private readonly people = new RowCache<Person>(async (accountId) => {
    const row = await this.apiKeysRepository.findPerson(accountId);
    if (!row) return null;
    return { ...callerFor(accountId), memberships: readMemberships(row.roles), loginsEpoch: row.loginsEpoch };
  });
  /**
   * Hashes of keys used in the last 5 s, by the key in clear text: SHA-256 for each request takes 6 µs. A hash only selects a row of {@link
   * cachedKeys}, so a revoked key is rejected even while its hash is cached.
   */
  private readonly hashes = new Map<string, string>();
  private readonly forgetHashes = repeat(CACHE_MS, () => this.hashes.clear());
  /** The client address is determined on writing: behind a proxy that takes 10 µs. */
  private readonly used = new WriteBehind<string, { at: Date; from: RequestOrigin }>('api-keys', (batch) => {
    const uses = [...batch.values()].map(({ at, from }) => ({ at, address: clientAddress(from, this.env.trustProxy) }));
    return this.apiKeysRepository.saveLastUses([...batch.keys()], uses);
  });

  /** Other sources of credentials: the check of open keys must not close their streams. */
  private otherSources: Pick<SessionSource, 'validAmong'>[] = [];

  constructor(
    @InjectRepository(ApiKey) private readonly apiKeyRepository: Repository<ApiKey>,
    private readonly apiKeysRepository: ApiKeysRepository,
    private readonly pubSub: PubSub,
    private readonly accountLimitsService: AccountLimitsService,
    private readonly revocationRegistry: RevocationRegistry,
    private readonly schedule: Schedule,
    private readonly env: Env,
    private readonly moduleRef: ModuleRef,
  ) {}

  async onModuleInit(): Promise<void> {
    if (this.env.roles.includes('api')) {
      const tokens = partOf<TokenSource | null>(this.moduleRef, TokenSource);
      this.otherSources = [...(tokens ? [tokens] : []), partOf(this.moduleRef, SessionSource)];
    }
    await this.pubSub.subscribe('auth.key-revoked', ({ keyId, now }) => this.forget(keyId, now));
    await this.pubSub.subscribe('auth.account-changed', ({ accountId }) => {
      // The schedule repeats a failed check.
      this.forgetAccount(accountId).catch(() => undefined);
    });
  }

  onApplicationBootstrap(): void {
    this.schedule.every('check of the keys of open streams', HELD_CHECK_MS, () => this.checkHeld());
  }

  async onApplicationShutdown(): Promise<void> {
    this.forgetHashes.stop();
    await this.used.onApplicationShutdown();
  }

  /**
   * Caches the caller of a key for 5 s, and returns a promise for others.
   *
   * @param from the request, whose client address is stored with the last use
   * @throws UnauthenticatedError
   */
  verify(key: string, from: RequestOrigin): Caller | Promise<Caller> {
    const remembered = this.hashes.get(key);
    if (remembered === undefined && !isApiKey(key)) throw UnauthenticatedError.invalid();
    const hash = remembered ?? hashApiKey(key).toString('hex');
    const cached = this.cachedKeys.peek(hash);
    if (cached) return this.use(key, hash, cached, from);
    return this.cachedKeys.get(hash).then((row) => {
      if (!row) throw UnauthenticatedError.invalid();
      return this.use(key, hash, row, from);
    });
  }

  /**
   * Creates a key, which only this response contains in clear text.
   *
   * @param caller whose key creates it
   * @throws NotFoundError, QuotaExceededError, ForbiddenError; InvalidInputError for an unknown scope, and for an expiry that is not in the
   * future or later than that of the caller's key
   */
  async create(
    caller: Caller,
    accountId: string,
    { name, expiresAt, scopes }: CreateApiKeyDto,
  ): Promise<CreatedApiKeyDto> {
    const distinct = scopes ? [...new Set(scopes)] : null;
    requireWithin(caller, distinct);
    return this.accountLimitsService
      .createWithinQuota({ accountId }, { apiKeys: 1 }, () =>
        transactionOf(this.apiKeyRepository, caller, (tx) =>
          this.make(caller, { accountId, name, scopes: distinct }, expiresAt, tx),
        ),
      )
      .catch(onViolation({ foreignKey: () => new NotFoundError('Account not found') }));
  }

  /**
   * Rotates a key. The new key has the name and scopes of the old one, which remains valid for at most `overlapSeconds`.
   *
   * @param caller whose key rotates it
   * @throws as {@link create}; ConflictError for a key that has been replaced
   */
  async rotate(
    caller: Caller,
    accountId: string,
    keyId: string,
    { expiresAt, overlapSeconds = 0 }: RotateApiKeyDto,
  ): Promise<CreatedApiKeyDto> {
    const newKey = await this.accountLimitsService.createWithinQuota({ accountId }, { apiKeys: 1 }, () =>
      transactionOf(this.apiKeyRepository, caller, async (tx) => {
        // Locks both keys in the order of a revocation.
        await this.apiKeysRepository.lock(tx, [keyId, makerKeyOf(caller) ?? keyId]);
        const old = await tx.findOne(ApiKey, { where: { id: keyId, accountId }, lock: { mode: 'for_no_key_update' } });
        if (!old) throw new NotFoundError('API key not found');
        requireWithin(caller, old.scopes);
        if (old.replacedBy !== null) {
          throw new ConflictError(`This API key was replaced by ${old.replacedBy}: rotate that one`);
        }
        const made = await this.make(caller, { accountId, name: old.name, scopes: old.scopes }, expiresAt, tx);
        const end = new Date(Date.now() + overlapSeconds * 1_000);
        const expiry = old.expiresAt && old.expiresAt < end ? old.expiresAt : end;
        await tx.update(ApiKey, { id: keyId }, { replacedBy: made.id, expiresAt: expiry });
        await this.apiKeysRepository.moveLogins(tx, keyId, made.id);
        return made;
      }),
    );
    if (overlapSeconds === 0) this.announceRevocation(keyId);
    else this.cachedKeys.dropWhere(({ caller: { keyId: id } }) => id === keyId);
    return newKey;
  }

  /** @throws NotFoundError when the key was revoked meanwhile */
  async accessOf({ keyId, isOperator }: Caller): Promise<AccessDto> {
    const row = await this.apiKeyRepository.findOne({ where: { id: keyId }, relations: { account: true } });
    if (!row) throw new NotFoundError('API key not found');
    const { id, name, expiresAt, scopes, account } = row;
    const keyScopes = readScopes(scopes);
    const rights = keyScopes?.map(scopeInWords) ?? ['Do everything that the account may do.'];
    if (isOperator && (keyScopes === null || covers(keyScopes, 'manage', null))) {
      rights.push('Manage all accounts and their keys, as the operator.');
    }
    return {
      account: toAccountDto(account),
      apiKey: { id, name, expiresAt: expiresAt?.toISOString() ?? null },
      scopes,
      rights,
    };
  }

  async list(accountId: string): Promise<ApiKeyListDto> {
    const rows = await this.apiKeyRepository.find({ where: { accountId }, order: { createdAt: 'DESC', id: 'DESC' } });
    return { apiKeys: rows.map(toApiKeyDto) };
  }

  async nameOf(id: string): Promise<string | null> {
    const key = await this.apiKeyRepository.findOne({ where: { id }, select: { id: true, name: true } });
    return key?.name ?? null;
  }

  /**
   * Closes the streams and tunnels of the key.
   *
   * @param made also revokes what was created with it; in other accounts only for the operator
   * @param now cancels running calls of these keys; otherwise they have 2 s to finish
   * @throws NotFoundError when none was revoked
   */
  async revoke(
    caller: Caller,
    accountId: string,
    keyId: string,
    { made = false, now = false }: RevokeApiKeyQueryDto,
    endMembers = (_keyIds: string[]) => Promise.resolve(0),
  ): Promise<string[]> {
    const { revoked, makers, operators, others } = await this.apiKeysRepository.revoke(caller, accountId, keyId, made);
    const members = made ? await endMembers(makers) : 0;
    // The announcement also drops cached grants.
    if (made) for (const id of [accountId, ...operators]) await this.accountChanged(id);
    if (revoked.length + others + members === 0) throw new NotFoundError('API key not found');
    for (const id of revoked) this.announceRevocation(id, now);
    return revoked;
  }

  /** Returns a user at most 5 s old, or null for a disabled or missing account. */
  callerOf(accountId: string): Promise<Person | null> {
    return this.people.get(accountId);
  }

  async membershipsAmong(ids: string[]): Promise<Map<string, Memberships>> {
    const valid = await this.liveAmong(ids);
    const rows = await this.apiKeysRepository.rolesOf([...valid]);
    return new Map(rows.map(({ id, roles }) => [id, readMemberships(roles)]));
  }

  async liveAmong(ids: string[]): Promise<Set<string>> {
    if (ids.length === 0) return new Set();
    const valid = await this.apiKeysRepository.validAmong(ids);
    const otherIds = ids.filter((id) => !valid.has(id));
    if (otherIds.length === 0) return valid;
    const good = await Promise.all(this.otherSources.map((source) => source.validAmong(otherIds)));
    return new Set([...valid, ...good.flatMap((validIds) => [...validIds])]);
  }

  /** Suspends credentials within 5 s; a null reason accepts them again. */
  async setSuspended(accountId: string, reason: string | null, tx?: EntityManager): Promise<void> {
    const isChanged = await this.apiKeysRepository.setSuspended(accountId, reason, tx);
    if (isChanged && !tx) await this.accountChanged(accountId);
  }

  /** Closes streams that lost their rights. Call this after every change of an account's memberships, and after disabling it. */
  async accountChanged(accountId: string): Promise<void> {
    this.pubSub.announce('auth.account-changed', { accountId });
    await this.checkHeld();
  }

  async purgeExpired(now: Date): Promise<number> {
    const before = new Date(now.getTime() - EXPIRED_KEPT_DAYS * 24 * 60 * 60 * 1000);
    const { affected } = await this.apiKeyRepository.delete({ expiresAt: LessThan(before) });
    return affected ?? 0;
  }

  /**
   * Adds a key, with the caller's key among its creators ({@link makerKeyOf}). Without an expiry it gets that of the caller's key: a leaked
   * key that expires cannot create one that outlives it. Locks the caller's key, so that its revocation either finds the new key or
   * prevents it.
   */
  private async make(
    caller: Caller,
    of: Pick<ApiKey, 'accountId' | 'name' | 'scopes'>,
    expiry: string | null | undefined,
    tx: EntityManager,
  ): Promise<CreatedApiKeyDto> {
    const end = expiry == null ? null : new Date(expiry);
    // Negated, to also reject ISO 8601 forms that `Date` does not parse (weeks, days of the year).
    if (end && !(end.getTime() > Date.now())) {
      throw new InvalidInputError('expiresAt must be a date and time in the future');
    }
    const makerKeyId = makerKeyOf(caller);
    const maker =
      makerKeyId === undefined
        ? { expiresAt: null, madeBy: [] }
        : await tx.findOne(ApiKey, { where: { id: makerKeyId }, lock: { mode: 'for_key_share' } });
    if (!maker) throw UnauthenticatedError.invalid();
    if (end && maker.expiresAt && end > maker.expiresAt) {
      throw new InvalidInputError(
        `expiresAt must not be later than ${maker.expiresAt.toISOString()}, when the key of this request expires`,
      );
    }
    const makers = makerKeyId === undefined ? [] : [...maker.madeBy, makerKeyId];
    const madeBy = makers.toSpliced(MAKERS_MAX / 2, makers.length - MAKERS_MAX);
    const key = generateApiKey();
    const row = this.apiKeyRepository.create({
      ...of,
      prefix: prefixOf(key),
      hash: hashApiKey(key),
      madeBy,
      makerId: caller.accountId,
      expiresAt: end ?? maker.expiresAt,
    });
    await tx.insert(ApiKey, row);
    return { ...toApiKeyDto(row), key };
  }

  private use(key: string, hash: string, knownKey: KnownKey, { socket, headers }: RequestOrigin): Caller {
    const { caller, expiresAt, isDisabled, isSuspended } = knownKey;
    if (isDisabled) throw UnauthenticatedError.disabled();
    if (isSuspended) throw UnauthenticatedError.suspended();
    if (expiresAt && expiresAt.getTime() <= Date.now()) throw UnauthenticatedError.expired();
    this.hashes.set(key, hash);
    const from = {
      socket: { remoteAddress: socket.remoteAddress },
      headers: { 'x-forwarded-for': headers['x-forwarded-for'] },
    };
    this.used.set(caller.keyId, { at: new Date(), from });
    return caller;
  }

  private async load(hash: Buffer): Promise<KnownKey | null> {
    const row = await this.apiKeysRepository.findByHash(hash);
    if (!row || !timingSafeEqual(row.hash, hash)) return null;
    const { accountId, id: keyId, isOperator, overrides, expiresAt, isDisabled, isSuspended, loginsEpoch } = row;
    const scopes = readScopes(row.scopes);
    const memberships = readMemberships(row.roles);
    const limits = this.accountLimitsService.limitsOf(overrides);
    return {
      caller: { accountId, keyId, isOperator, scopes, memberships, limits, loginsEpoch },
      expiresAt,
      isDisabled,
      isSuspended,
    };
  }

  /** Closes what keys hold open that have expired or were revoked, in case the message about it was lost. */
  private async checkHeld(): Promise<void> {
    const keyIds = this.revocationRegistry.keyIds.filter((id) => id !== ANONYMOUS.keyId);
    const valid = await this.liveAmong(keyIds);
    for (const id of keyIds) if (!valid.has(id)) this.forget(id);
  }

  /** Closes the streams and tunnels of a deleted key: immediately in this process, within 5 s in every other. */
  announceRevocation(keyId: string, now = false): void {
    this.pubSub.announce('auth.key-revoked', { keyId, now });
  }

  private async forgetAccount(accountId: string): Promise<void> {
    // eslint-disable-next-line no-restricted-syntax -- names cached rows, decides nothing
    this.cachedKeys.dropWhere(({ caller }) => caller.accountId === accountId);
    this.people.drop(accountId);
    await this.checkHeld();
  }

  private forget(keyId: string, now = false): void {
    this.revocationRegistry.closeAllOf(keyId);
    if (now) this.revocationRegistry.cutCalls(keyId);
    this.cachedKeys.dropWhere(({ caller }) => caller.keyId === keyId);
    this.used.delete(keyId);
  }
}

/** Returns the key that creates other keys: for a session, the key it began with, or undefined if it began with a password. */
function makerKeyOf({ isSession, keyId, rootKeyId }: Caller): string | undefined {
  return isSession ? rootKeyId : keyId;
}

function requireWithin(caller: Caller, scopes: string[] | null): void {
  const rights = scopes && parseScopes(scopes);
  if (!caller.scopes || isWithin(rights, caller.scopes)) return;
  throw new ForbiddenError(
    `Forbidden: an API key cannot create a key with broader scopes than its own: ${caller.scopes.map(formatScope).join(', ')}. Name scopes within them, or use a key with broader scopes.`,
  );
}
