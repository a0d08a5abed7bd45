/**
 * Refreshes OAuth tokens, each once. Callers of this process share one attempt; processes wait for each other on the row of
 * `upstream_credentials`, where the second one finds a newer `generation` and sends nothing. The row is locked during the request, at most
 * 10 s, because servers that rotate refresh tokens treat a second use as theft and revoke the grant.
 *
 * A new token is used only after it is stored; if the database fails then, storing is retried for 10 s. If the process dies before the
 * commit, the rotated refresh token is lost: servers that tolerate a repetition issue it again, others need a new authorization.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { Injectable, Logger, type BeforeApplicationShutdown } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { Env } from '../../config/env.js';
import { createOAuthFetch } from '../../mcp/oauth/oauth-fetch.js';
import { UnclearRefusalError, TokenEndpointUnreachableError, TokenRefusedError } from '../../mcp/oauth/oauth-errors.js';
import { isClientRefusal, refreshTokens, type TokenSet } from '../../mcp/oauth/tokens.js';
import { Egress } from '../../platform/egress/egress.js';
import { KeyedLimiter, NoSlotError } from '../../platform/limits/keyed-limiter.js';
import { LogNamesRepository } from '../../platform/telemetry/log-names.repository.js';
import { Metrics, type LabeledCounter } from '../../platform/telemetry/metrics.js';
import { Vault } from '../../platform/vault/vault.js';
import { CredentialsRepository, isLockTimeout } from './credential.repository.js';
import { OAuthClient } from './oauth-client.entity.js';
import { OAuthClientsService } from './oauth-clients.service.js';
import { issuerOf, openTokens, storedTokens, type OpenedTokens } from './stored-tokens.js';
import { UpstreamCredential } from './upstream-credential.entity.js';

const SLOT_WAIT_MS = 10_000;

/** Maximum pause after failed refreshes; pauses start at 2 s and double. */
const RETRY_MS_MAX = 5 * 60_000;

/**
 * Adapters, and servers with their own error codes, do not report that a refresh token is invalid. After this many consecutive failures, in
 * about 20 minutes, an expired token is considered revoked.
 */
const UNCLEAR_REFUSALS_MAX = 10;

/** Number of attempts to store a refreshed token, since the database can fail after the refresh. */
const RESCUE_TRIES = 20;
const RESCUE_PAUSE_MS = 500;

/** Age below which a rejected token did not expire. */
const FRESH_MS = 10_000;

export type RefreshOutcome =
  | { kind: 'token'; accessToken: string }
  | { kind: 'required'; message: string }
  /** The token endpoint does not respond; the authorization stays stored. `accessToken` is the old one until it expires. */
  | { kind: 'away'; message: string; accessToken: string | null }
  | { kind: 'gone' };

export interface RefreshRequest {
  id: string;
  generation: number;
  host: string;
  /** The token that an upstream just rejected; absent for a token that is due. */
  rejected?: string;
  /** Called once by an attempt, before any of its callers continues. */
  onSettled: () => void;
}

/** Facts of an attempt that outlive its transaction. */
interface AttemptHandlers {
  onRotated: (row: UpstreamCredential) => void;
  onRefused: (client: OAuthClient) => void;
}

interface RefusedAttempt extends Pick<AttemptHandlers, 'onRefused'> {
  /** Null for an adapter. */
  client: OAuthClient | null;
  /** Null if the old access token is no longer valid. */
  usable: OpenedTokens | null;
}

@Injectable()
export class TokenRefresherService implements BeforeApplicationShutdown {
  private readonly logger = new Logger('credentials');
  private readonly running = new Map<string, Promise<RefreshOutcome>>();
  /** Counter of refreshes by result; callers that share a refresh are counted once. */
  private readonly results: LabeledCounter<'result'>;
  /** Slots of refreshes. Each refresh holds a database connection during its request: together they get a quarter of the pool. */
  private readonly slots: KeyedLimiter;

  constructor(
    private readonly database: DataSource,
    private readonly credentialsRepository: CredentialsRepository,
    private readonly oauthClientsService: OAuthClientsService,
    private readonly vault: Vault,
    private readonly egress: Egress,
    env: Env,
    metrics: Metrics,
  ) {
    this.slots = KeyedLimiter.fair(Math.max(1, Math.floor(env.databasePoolMax / 4)), SLOT_WAIT_MS);
    this.results = metrics.labeledCounter(
      'slipway_oauth_refreshes_total',
      'Refreshes of tokens by result: a token; authorization required again; token endpoint unavailable; credential deleted.',
      { result: ['token', 'required', 'away', 'gone'] satisfies RefreshOutcome['kind'][] },
    );
  }

  /** Waits for running refreshes, which store their tokens before the database closes. */
  async beforeApplicationShutdown(): Promise<void> {
    await Promise.allSettled(this.running.values());
  }

  /** Does nothing if the tokens were refreshed after the caller read them. */
  refresh(request: RefreshRequest): Promise<RefreshOutcome> {
    const running = this.running.get(request.id);
    if (running) return running;
    const started = this.start(request).finally(() => {
      this.running.delete(request.id);
      request.onSettled();
    });
    this.running.set(request.id, started);
    return started;
  }

  private async start(request: RefreshRequest): Promise<RefreshOutcome> {
    try {
      const outcome = await this.slots.run(request.host, () => this.underLock(request));
      this.results.inc({ result: outcome.kind });
      return outcome;
    } catch (error) {
      if (!(error instanceof NoSlotError) && !isLockTimeout(error)) throw error;
      this.results.inc({ result: 'away' });
      const message = 'Another refresh of this authorization takes too long: try again in a moment.';
      return { kind: 'away', message, accessToken: null };
    }
  }

  private async underLock(request: RefreshRequest): Promise<RefreshOutcome> {
    let rotated: UpstreamCredential | null = null;
    let refused: OAuthClient | null = null;
    try {
      const outcome = await this.database.transaction(async (tx) => {
        await this.credentialsRepository.limitLockWait(tx);
        const row = await tx.findOne(UpstreamCredential, {
          where: { id: request.id },
          lock: { mode: 'pessimistic_write' },
        });
        if (!row) return { kind: 'gone' } as const;
        return (
          settledBefore(row, request, this.vault) ??
          this.attempt(tx, row, request, {
            onRotated: (changed) => (rotated = changed),
            onRefused: (client) => (refused = client),
          })
        );
      });
      if (refused) await this.oauthClientsService.handleRejection((refused as OAuthClient).id);
      return outcome;
    } catch (error) {
      if (rotated === null) throw error;
      return this.storeAgain(rotated, error);
    }
  }

  /** Attempts a refresh; the caller commits. */
  private async attempt(
    tx: EntityManager,
    row: UpstreamCredential,
    { rejected }: RefreshRequest,
    { onRotated, onRefused }: AttemptHandlers,
  ): Promise<RefreshOutcome> {
    const oldTokens = openTokens(row, this.vault) as OpenedTokens;
    const client = row.clientRowId === null ? null : await tx.findOne(OAuthClient, { where: { id: row.clientRowId } });
    const isUnknown = client === null && row.server.adapter === undefined;
    if (isUnknown || oldTokens.refreshToken === null) {
      const isUsable = !isPast(row.expiresAt) && oldTokens.accessToken !== rejected;
      if (isUsable) {
        // Without a refresh token, a token is due at its expiry.
        await tx.update(UpstreamCredential, { id: row.id }, { dueAt: row.expiresAt });
        return { kind: 'token', accessToken: oldTokens.accessToken };
      }
      const reason = oldTokens.refreshToken === null ? 'it gave no refresh token' : 'it no longer knows Slipway';
      return this.drop(tx, row, `The token of ${issuerOf(row)} has ended, and ${reason}.`);
    }
    try {
      const tokens = await this.renew(row, client, oldTokens.refreshToken);
      const changed = { ...row, ...storedTokens(row, tokens, this.vault), refreshedAt: new Date() };
      if (tokens.withoutResource) changed.resource = '';
      onRotated(changed);
      if (client && tokens.authMethod) await this.oauthClientsService.authenticates(client.id, tokens.authMethod, tx);
      await write(tx, changed, row.generation);
      return { kind: 'token', accessToken: tokens.accessToken };
    } catch (error) {
      if (error instanceof TokenRefusedError) {
        const isUsable = !isPast(row.expiresAt) && oldTokens.accessToken !== rejected;
        return this.handleRefusal(tx, row, error, { client, onRefused, usable: isUsable ? oldTokens : null });
      }
      if (!(error instanceof TokenEndpointUnreachableError)) throw error;
      const isHopeless = error instanceof UnclearRefusalError && row.failures + 1 >= UNCLEAR_REFUSALS_MAX;
      const isOver = isPast(row.expiresAt) || oldTokens.accessToken === rejected;
      if (isHopeless && isOver) return this.drop(tx, row, error.message);
      return this.postpone(tx, row, oldTokens, rejected, error.message);
    }
  }

  /** @param client null for an adapter. @throws TokenRefusedError, TokenEndpointUnreachableError */
  private async renew(row: UpstreamCredential, client: OAuthClient | null, refreshToken: string): Promise<TokenSet> {
    const { server, resource, scopes, ownerKind: kind, ownerId: id } = row;
    if (client === null) return (await this.oauthClientsService.adapterOf({ kind, id })).refreshToken(refreshToken);
    const context = { server, client: this.oauthClientsService.toClient(client), resource };
    return refreshTokens(createOAuthFetch(this.egress), context, refreshToken, scopes);
  }

  private async handleRefusal(
    tx: EntityManager,
    row: UpstreamCredential,
    error: TokenRefusedError,
    { client, onRefused, usable }: RefusedAttempt,
  ): Promise<RefreshOutcome> {
    const { code, host } = error;
    const isClient = client !== null && isClientRefusal(error);
    if (isClient && client.kind === 'document') {
      const message = `${host} does not accept ${client.clientId} as its client: can it read that address?`;
      const oldTokens = openTokens(row, this.vault) as OpenedTokens;
      return this.postpone(tx, row, oldTokens, undefined, message);
    }
    this.logger.warn({
      msg: 'an authorization has ended',
      ...(await namesOf(row, tx)),
      authorizationServer: host,
      code,
    });
    const subject = isClient && client.kind === 'given' ? 'client that was given for this' : 'authorization';
    if (isClient) onRefused(client);
    if (usable) {
      // The access token is valid until it expires or is rejected.
      const { accessToken } = usable;
      const sealedTokens = this.vault.seal(
        JSON.stringify({ accessToken, refreshToken: null } satisfies OpenedTokens),
        row.id,
      );
      const generation = row.generation + 1;
      await tx.update(UpstreamCredential, { id: row.id }, { sealedTokens, dueAt: row.expiresAt, generation });
      return { kind: 'token', accessToken };
    }
    return this.drop(tx, row, `${host} no longer accepts the ${subject} (${code}).`);
  }

  private async drop(tx: EntityManager, row: UpstreamCredential, message: string): Promise<RefreshOutcome> {
    const cleared = { state: 'required', sealedTokens: null, expiresAt: null, dueAt: null } as const;
    await tx.update(UpstreamCredential, { id: row.id }, { ...cleared, generation: row.generation + 1 });
    return { kind: 'required', message };
  }

  private async postpone(
    tx: EntityManager,
    row: UpstreamCredential,
    oldTokens: OpenedTokens,
    rejected: string | undefined,
    reason: string,
  ): Promise<RefreshOutcome> {
    const failures = row.failures + 1;
    const pauseMs = Math.min(RETRY_MS_MAX, 2 ** Math.min(failures, 20) * 1_000);
    await tx.update(UpstreamCredential, { id: row.id }, { failures, retryAt: new Date(Date.now() + pauseMs) });
    this.logger.warn({ msg: 'a token could not be refreshed', ...(await namesOf(row, tx)), failures, reason });
    return toAwayOutcome(reason, row, oldTokens, rejected);
  }

  /** Stores a token again that the server has rotated: the old one is no longer valid. */
  private async storeAgain(rotated: UpstreamCredential, error: unknown): Promise<RefreshOutcome> {
    for (let tries = 1; ; tries += 1) {
      try {
        await write(this.database.manager, rotated, rotated.generation - 1);
        this.logger.warn({ msg: 'a rotated token was stored late', ...(await namesOf(rotated, this.database)), tries });
        const row = await this.database.manager.findOne(UpstreamCredential, { where: { id: rotated.id } });
        const storedTokenPair = row && openTokens(row, this.vault);
        return storedTokenPair ? { kind: 'token', accessToken: storedTokenPair.accessToken } : { kind: 'gone' };
      } catch (again) {
        if (tries === RESCUE_TRIES) {
          this.logger.error({
            msg: 'a rotated token could not be stored',
            ...(await namesOf(rotated, this.database)),
            err: again,
          });
          throw error;
        }
        await wait(RESCUE_PAUSE_MS);
      }
    }
  }
}

/** Writes tokens, without overwriting newer ones. */
async function write(tx: EntityManager, row: UpstreamCredential, before: number): Promise<void> {
  const { sealedTokens, scopes, resource, expiresAt, dueAt, generation, refreshedAt, failures, retryAt } = row;
  await tx.update(
    UpstreamCredential,
    { id: row.id, generation: before },
    { sealedTokens, scopes, resource, expiresAt, dueAt, generation, refreshedAt, failures, retryAt },
  );
}

/** Returns null if a request is needed: no other process was faster, no user must authorize again, and no pause is running. */
function settledBefore(row: UpstreamCredential, request: RefreshRequest, vault: Vault): RefreshOutcome | null {
  const oldTokens = openTokens(row, vault);
  if (!oldTokens) return { kind: 'required', message: `The authorization at ${issuerOf(row)} has ended.` };
  const { rejected, generation } = request;
  const isNewer = row.generation !== generation && oldTokens.accessToken !== rejected;
  if (isNewer && !isPast(row.dueAt)) return { kind: 'token', accessToken: oldTokens.accessToken };
  if (rejected === oldTokens.accessToken && row.refreshedAt && Date.now() - row.refreshedAt.getTime() < FRESH_MS) {
    return { kind: 'required', message: 'The MCP server refuses even a token that was issued a moment ago.' };
  }
  if (row.retryAt && !isPast(row.retryAt)) {
    return toAwayOutcome(`${issuerOf(row)} could not be reached a moment ago.`, row, oldTokens, rejected);
  }
  return null;
}

/** Returns names for a log line. @param database the transaction, if there is one: it holds a connection */
async function namesOf(
  { id, ownerKind, ownerId }: UpstreamCredential,
  database: Pick<EntityManager, 'query'>,
): Promise<object> {
  return { credentialId: id, ...(await LogNamesRepository.find(database, ownerKind, ownerId)) };
}

function toAwayOutcome(
  reason: string,
  row: UpstreamCredential,
  oldTokens: OpenedTokens,
  rejected: string | undefined,
): RefreshOutcome {
  const isUsable = !isPast(row.expiresAt) && oldTokens.accessToken !== rejected;
  return { kind: 'away', message: reason, accessToken: isUsable ? oldTokens.accessToken : null };
}

/** Returns true for a time in the past, and false for null. */
function isPast(time: Date | null): boolean {
  return time !== null && time.getTime() <= Date.now();
}
