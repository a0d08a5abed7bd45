import { hash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import type { AccountLimits } from '../../config/account-limits.js';
import { Env } from '../../config/env.js';
import { Tuning } from '../../config/tuning.js';
import { shareOf } from '../../config/workers.js';
import { clientAddress, isTrusted, peerOf } from '../../platform/http/client-address.js';
import { RevocationRegistry } from '../../platform/http/revocation-registry.js';
import { KeyedLimiter } from '../../platform/limits/keyed-limiter.js';
import { RateCounter, WINDOW_SECONDS } from '../../platform/limits/rate-counter.js';
import { ANONYMOUS, type Caller } from './access.types.js';
import { TooManyError } from '../../platform/errors/domain-error.js';
import { UnauthenticatedError } from './auth.errors.js';

const ACCOUNT_GUESSES_MAX = 10;

/** Refreshes of one client authorization: a token lasts for hours, so programs that share one send few. */
const REFRESHES_PER_MINUTE_MAX = 60;

const STARTS_PER_MINUTE_MAX = 120;

const FAILURE_WAIT_SECONDS_MAX = 900;

/** Limits of requests, which a request with a valid key passes without waiting. */
@Injectable()
export class RequestLimits {
  private readonly calls = new KeyedLimiter(Infinity, Infinity);
  private readonly policies = new WeakMap<AccountLimits, string>();

  constructor(
    private readonly env: Env,
    private readonly tuning: Tuning,
    private readonly rateCounter: RateCounter,
    private readonly revocationRegistry: RevocationRegistry,
  ) {}

  /**
   * @param response null for a WebSocket handshake, and where its headers are already set
   * @param requests more than one for the further messages of a batch
   * @throws TooManyError
   */
  admit(request: IncomingMessage, caller: Caller, response: ServerResponse | null, requests = 1): void {
    if (caller === ANONYMOUS) return this.admitStranger(request, response, requests);
    const { keyId, accountId, limits = this.env.accountLimits } = caller;
    const { keyRequestsPerMinute: keyMax, requestsPerMinute: accountMax } = limits;
    const ofKey = this.rateCounter.add(keyId, requests);
    const ofAccount = this.rateCounter.add(accountId, requests);
    if (response) {
      let policy = this.policies.get(limits);
      if (policy === undefined) {
        policy = `${policyOf('key', keyMax)}, ${policyOf('account', accountMax)}`;
        this.policies.set(limits, policy);
      }
      response.setHeader('ratelimit-policy', policy);
      response.setHeader(
        'ratelimit',
        `${this.stateOf('key', ofKey, keyMax)}, ${this.stateOf('account', ofAccount, accountMax)}`,
      );
    }
    if (ofKey > keyMax) throw this.exceeded('key', keyMax);
    if (ofAccount > accountMax) throw this.exceeded('account', accountMax);
  }

  /** @throws TooManyError */
  admitStranger(request: IncomingMessage, response: ServerResponse | null, requests = 1): void {
    const address = this.addressOf(request);
    if (address === null) return;
    const count = this.rateCounter.add(address, requests);
    const max = this.tuning.requestsPerAddress;
    response?.setHeader('ratelimit-policy', policyOf('address', max));
    response?.setHeader('ratelimit', this.stateOf('address', count, max));
    if (count > max) throw this.exceeded('address', max);
  }

  countRefused(request: IncomingMessage): void {
    const address = this.addressOf(request);
    if (address !== null) this.rateCounter.add(address);
  }

  /** @throws TooManyError */
  admitRefresh(grantId: string): void {
    if (this.rateCounter.add(`refresh:${grantId}`) > REFRESHES_PER_MINUTE_MAX) {
      throw this.exceeded('login', REFRESHES_PER_MINUTE_MAX);
    }
  }

  /**
   * Counts a call towards the concurrent calls of its account until its response ends. Revoking its key or grant cancels it.
   *
   * @throws TooManyError
   */
  beginCall(
    { accountId, keyId, rootKeyId, grant, limits = this.env.accountLimits }: Caller,
    response: ServerResponse,
  ): void {
    const end = this.calls.acquire(accountId, limits.callsAtOnce);
    if (!end) {
      throw new TooManyError(
        `This account has ${shareOf(limits.callsAtOnce)} calls at work, the limit of a process. Try again in 1 s.`,
        1,
      );
    }
    // A response whose client disconnected emits no further event.
    if (response.destroyed) return end();
    const forget = this.revocationRegistry.addCall(response, [keyId, rootKeyId, grant?.id]);
    response.once('close', () => {
      forget();
      end();
    });
  }

  /**
   * Counts a rejected request, by its address. A valid key from the same address is never rejected because of it.
   *
   * @returns the error to send: `error` itself, or that of too many failures or requests
   */
  async refusal(error: unknown, request: IncomingMessage, response: ServerResponse | null): Promise<unknown> {
    if (!(error instanceof UnauthenticatedError)) return error;
    const address = this.addressOf(request);
    if (address === null) return error;
    if (error.isAttempt) {
      const surplus = (await this.rateCounter.addFailure(address)) - this.env.authFailuresMax;
      if (surplus > 0) {
        const seconds = Math.min(2 ** (surplus - 1), FAILURE_WAIT_SECONDS_MAX);
        return new TooManyError(
          `Too many requests without a valid key from this address. ${error.message} Try again in ${seconds} s.`,
          seconds,
        );
      }
    }
    try {
      this.admitStranger(request, response);
      return error;
    } catch (exceeded) {
      return exceeded;
    }
  }

  /**
   * Counts an attempt to sign in before the password is checked, so that concurrent guesses count too.
   *
   * @param client the address, as `clientAddress` reads it
   * @param account the name that was entered, whether the account exists or not; null if none was
   * @returns false when there were too many; otherwise the function to call when the password was right
   */
  async admitGuess(client: string, account: string | null): Promise<false | (() => Promise<void>)> {
    const address = this.peerAt(client);
    const limits = new Map<string, number>();
    if (account !== null) limits.set(`account:${hash('sha256', account)}`, ACCOUNT_GUESSES_MAX);
    if (address !== null) limits.set(address, this.env.authFailuresMax);
    const keys = [...limits.keys()];
    const counts = await Promise.all(keys.map((key) => this.rateCounter.addFailure(key)));
    if (keys.some((key, i) => counts[i] > (limits.get(key) ?? 0))) return false;
    return async () => {
      await Promise.all(keys.map((key) => this.rateCounter.forgiveFailure(key)));
    };
  }

  /** @throws TooManyError */
  admitStart(client: string): void {
    const address = this.peerAt(client);
    if (address !== null && this.rateCounter.add(`start:${address}`) > STARTS_PER_MINUTE_MAX) {
      throw this.exceeded('address', STARTS_PER_MINUTE_MAX);
    }
  }

  /** @returns null for a trusted proxy that names no client */
  addressOf(request: IncomingMessage): string | null {
    return this.peerAt(clientAddress(request, this.env.trustProxy));
  }

  peerAt(address: string): string | null {
    return isTrusted(address, this.env.trustProxy) ? null : peerOf(address);
  }

  private stateOf(name: string, count: number, max: number): string {
    return `"${name}";r=${Math.max(0, max - count)};t=${this.rateCounter.secondsLeft}`;
  }

  private exceeded(name: string, max: number): TooManyError {
    const seconds = this.rateCounter.secondsLeft;
    return new TooManyError(
      `This ${name} has sent ${max} requests in this minute, its limit. Try again in ${seconds} s.`,
      seconds,
    );
  }
}

function policyOf(name: string, max: number): string {
  return `"${name}";q=${max};w=${WINDOW_SECONDS}`;
}
