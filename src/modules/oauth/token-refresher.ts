import { setTimeout as wait } from 'node:timers/promises';
import { Injectable, Logger, type BeforeApplicationShutdown } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import { Env } from '../../config/env.js';
import { createOAuthFetch } from '../../mcp/oauth/oauth-fetch.js';
import { AdapterFailedError, TokenEndpointAwayError, TokenRefusedError } from '../../mcp/oauth/oauth-errors.js';
import { isClientRefusal, refreshTokens, type TokenSet } from '../../mcp/oauth/tokens.js';
import { Egress } from '../../platform/egress/egress.js';
import { NoSlotError, FairSemaphore } from '../../platform/limits/fair-semaphore.js';
import { Counts } from '../../platform/telemetry/figures.js';
import { Vault } from '../../platform/vault/vault.js';
import { AuthAdaptersService } from './auth-adapters.service.js';
import { OAuthClient } from './oauth-client.entity.js';
import { OAuthClients } from './oauth-clients.js';
import { away, isPast, issuerOf, settledBefore } from './refresh-outcome.js';
import type { RefreshOutcome, RefreshRequest } from './refresh-outcome.js';
import { openTokens, storedTokens, type HeldTokens } from './stored-tokens.js';
import { UpstreamCredential } from './upstream-credential.entity.js';

/** A refresh holds the row for 10 s at most; who waits longer than that for it learns of trouble. */
const LOCK_TIMEOUT = '12s';
const SLOT_WAIT_MS = 10_000;

/** After a refresh that failed on the way: 2 s, 4 s, … */
const RETRY_MS_MAX = 5 * 60_000;

/**
 * An adapter has no agreed word for a refresh token that is no longer good: after so many failures in a row, 20 minutes of
 * them, a token past its end is given up.
 */
const ADAPTER_FAILURES_MAX = 10;

/** How often, and how long apart, a rotated token is tried to be stored when the database fails at that very moment. */
const RESCUE_TRIES = 20;
const RESCUE_PAUSE_MS = 500;

/**
 * Renews tokens, once for everybody: callers of this process share one attempt, processes wait for each other on the
 * credential's row, and who got the row second finds a newer generation and asks nobody. The row is held while the token
 * endpoint is asked, for 10 s at most, so that no second process can send the same refresh token: servers that rotate them
 * take that for theft and revoke everything.
 *
 * A new token is used only once it is stored. If this process dies between the answer and the commit, the rotated refresh
 * token is lost: a server that tolerates a repetition gives it once more, any other one asks for a new authorization.
 */
@Injectable()
export class TokenRefresher implements BeforeApplicationShutdown {
  private readonly logger = new Logger('credentials');
  private readonly running = new Map<string, Promise<RefreshOutcome>>();
  /** How refreshes ended in this process; who waits for one of another caller is not counted. */
  readonly results = new Counts<RefreshOutcome['kind']>('result', ['token', 'required', 'away', 'gone']);
  /** Each refresh holds a database connection while somebody else's server thinks: they get a quarter of the pool. */
  private readonly slots: FairSemaphore;

  constructor(
    private readonly dataSource: DataSource,
    private readonly clients: OAuthClients,
    private readonly adapters: AuthAdaptersService,
    private readonly vault: Vault,
    private readonly egress: Egress,
    env: Env,
  ) {
    this.slots = new FairSemaphore(Math.max(1, Math.floor(env.databasePoolMax / 4)), SLOT_WAIT_MS);
  }

  /** Lets what runs store its tokens before the database closes. */
  async beforeApplicationShutdown(): Promise<void> {
    await Promise.allSettled(this.running.values());
  }

  /** Renews the tokens of a credential, unless that has happened since the caller looked. */
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
      const { outcome, lostClientId } = await this.slots.run(request.host, () => this.underLock(request));
      if (lostClientId !== null) await this.clients.refused(lostClientId);
      this.results.add(outcome.kind);
      return outcome;
    } catch (error) {
      if (!(error instanceof NoSlotError) && !isLockTimeout(error)) throw error;
      this.results.add('away');
      const message = 'Another refresh of this authorization takes too long: try again in a moment.';
      return { kind: 'away', message, accessToken: null };
    }
  }

  private async underLock(request: RefreshRequest): Promise<{ outcome: RefreshOutcome; lostClientId: string | null }> {
    let rotated: UpstreamCredential | null = null;
    try {
      return await this.dataSource.transaction(async (tx) => {
        await tx.query(`SET LOCAL lock_timeout = '${LOCK_TIMEOUT}'`);
        const row = await tx.findOne(UpstreamCredential, {
          where: { id: request.id },
          lock: { mode: 'pessimistic_write' },
        });
        const known = row ? settledBefore(row, request, this.vault) : ({ kind: 'gone' } as const);
        if (known || !row) return { outcome: known ?? { kind: 'gone' }, lostClientId: null };
        return this.ask(tx, row, request, (changed) => (rotated = changed));
      });
    } catch (error) {
      if (rotated === null) throw error;
      return { outcome: await this.rescue(rotated, error), lostClientId: null };
    }
  }

  /** Asks the token endpoint and writes down what came of it; the caller commits. */
  private async ask(
    tx: EntityManager,
    row: UpstreamCredential,
    { rejected }: RefreshRequest,
    onRotated: (row: UpstreamCredential) => void,
  ): Promise<{ outcome: RefreshOutcome; lostClientId: string | null }> {
    const held = openTokens(row, this.vault) as HeldTokens;
    const client = row.clientRowId === null ? null : await tx.findOne(OAuthClient, { where: { id: row.clientRowId } });
    const isUnknown = client === null && row.server.adapter === undefined;
    if (isUnknown || held.refreshToken === null) {
      const isUsable = !isPast(row.expiresAt) && held.accessToken !== rejected;
      if (isUsable) {
        // Nothing can be done before it ends, so nobody needs to look before.
        await tx.update(UpstreamCredential, { id: row.id }, { dueAt: row.expiresAt });
        return { outcome: { kind: 'token', accessToken: held.accessToken }, lostClientId: null };
      }
      const reason = held.refreshToken === null ? 'it gave no refresh token' : 'it no longer knows Slipway';
      return {
        outcome: await this.drop(tx, row, `The token of ${issuerOf(row)} has ended, and ${reason}.`),
        lostClientId: null,
      };
    }
    try {
      const tokens = await this.renew(row, client, held.refreshToken);
      const changed = { ...row, ...storedTokens(row, tokens, this.vault), refreshedAt: new Date() };
      onRotated(changed);
      await write(tx, changed, row.generation);
      return { outcome: { kind: 'token', accessToken: tokens.accessToken }, lostClientId: null };
    } catch (error) {
      if (error instanceof TokenRefusedError) return this.refused(tx, row, client, error);
      if (!(error instanceof TokenEndpointAwayError)) throw error;
      const isHopeless = error instanceof AdapterFailedError && row.failures + 1 >= ADAPTER_FAILURES_MAX;
      const isOver = isPast(row.expiresAt) || held.accessToken === rejected;
      const outcome =
        isHopeless && isOver
          ? await this.drop(tx, row, error.message)
          : await this.postpone(tx, row, held, rejected, error.message);
      return { outcome, lostClientId: null };
    }
  }

  /** @param client null for an adapter. @throws TokenRefusedError, TokenEndpointAwayError */
  private async renew(row: UpstreamCredential, client: OAuthClient | null, refreshToken: string): Promise<TokenSet> {
    const { server, resource, ownerKind: kind, ownerId: id } = row;
    if (client === null) return (await this.adapters.of({ kind, id })).refreshToken(refreshToken);
    const context = { server, client: this.clients.toClient(client), resource };
    return refreshTokens(createOAuthFetch(this.egress), context, refreshToken);
  }

  private async refused(
    tx: EntityManager,
    row: UpstreamCredential,
    client: OAuthClient | null,
    error: TokenRefusedError,
  ): Promise<{ outcome: RefreshOutcome; lostClientId: string | null }> {
    const { code, host } = error;
    const isClient = client !== null && isClientRefusal(error);
    if (isClient && client.kind === 'document') {
      const message = `${host} does not accept ${client.clientId} as its client: can it read that address?`;
      const held = openTokens(row, this.vault) as HeldTokens;
      return { outcome: await this.postpone(tx, row, held, undefined, message), lostClientId: null };
    }
    this.logger.warn({ msg: 'an authorization has ended', credentialId: row.id, host, code });
    const what = isClient && client.kind === 'given' ? 'client that was given for this' : 'authorization';
    const outcome = await this.drop(tx, row, `${host} no longer accepts the ${what} (${code}).`);
    return { outcome, lostClientId: isClient ? client.id : null };
  }

  private async drop(tx: EntityManager, row: UpstreamCredential, message: string): Promise<RefreshOutcome> {
    const gone = { state: 'required', sealedTokens: null, expiresAt: null, dueAt: null } as const;
    await tx.update(UpstreamCredential, { id: row.id }, { ...gone, generation: row.generation + 1 });
    return { kind: 'required', message };
  }

  private async postpone(
    tx: EntityManager,
    row: UpstreamCredential,
    held: HeldTokens,
    rejected: string | undefined,
    reason: string,
  ): Promise<RefreshOutcome> {
    const failures = row.failures + 1;
    const pauseMs = Math.min(RETRY_MS_MAX, 2 ** Math.min(failures, 20) * 1_000);
    await tx.update(UpstreamCredential, { id: row.id }, { failures, retryAt: new Date(Date.now() + pauseMs) });
    this.logger.warn({ msg: 'a token could not be refreshed', credentialId: row.id, failures, reason });
    return away(reason, row, held, rejected);
  }

  /** The database failed after the server had rotated the token: without this the authorization would be lost. */
  private async rescue(rotated: UpstreamCredential, error: unknown): Promise<RefreshOutcome> {
    for (let tries = 1; ; tries += 1) {
      try {
        await write(this.dataSource.manager, rotated, rotated.generation - 1);
        this.logger.warn({ msg: 'a rotated token was stored late', credentialId: rotated.id, tries });
        const row = await this.dataSource.manager.findOne(UpstreamCredential, { where: { id: rotated.id } });
        const held = row && openTokens(row, this.vault);
        return held ? { kind: 'token', accessToken: held.accessToken } : { kind: 'gone' };
      } catch (again) {
        if (tries === RESCUE_TRIES) {
          this.logger.error({ msg: 'a rotated token could not be stored', credentialId: rotated.id, err: again });
          throw error;
        }
        await wait(RESCUE_PAUSE_MS);
      }
    }
  }
}

/** Writes the tokens, unless somebody else has written newer ones. */
async function write(tx: EntityManager, row: UpstreamCredential, before: number): Promise<void> {
  const { sealedTokens, scopes, expiresAt, dueAt, generation, refreshedAt, failures, retryAt } = row;
  await tx.update(
    UpstreamCredential,
    { id: row.id, generation: before },
    { sealedTokens, scopes, expiresAt, dueAt, generation, refreshedAt, failures, retryAt },
  );
}

/** SQLSTATE 55P03: the row was not free in time. */
function isLockTimeout(error: unknown): boolean {
  return (error as { driverError?: { code?: string } }).driverError?.code === '55P03';
}
