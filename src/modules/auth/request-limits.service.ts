import type { IncomingMessage, ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { clientAddress, isTrusted, peerOf } from '../../platform/http/client-address.js';
import { KeyedLimiter } from '../../platform/limits/keyed-limiter.js';
import { RateCounter, WINDOW_SECONDS } from '../../platform/limits/rate-counter.js';
import { ANONYMOUS, type Caller } from './access.types.js';
import { RateLimitedError, UnauthenticatedError } from './auth.errors.js';

/** Longest `Retry-After` of a failed authentication. */
const FAILURE_WAIT_SECONDS_MAX = 900;

/** One limit, and the count of requests under it. */
interface Counted {
  name: 'key' | 'account' | 'address';
  count: number;
  max: number;
}

/**
 * Limits the requests of each key and account, and of each address without a valid key. Nothing is awaited for a request
 * with a valid key.
 */
@Injectable()
export class RequestLimits {
  private readonly calls = new KeyedLimiter(Infinity, Infinity);

  constructor(
    private readonly env: Env,
    private readonly counter: RateCounter,
  ) {}

  /**
   * Counts a request whose caller is known, and sets its `RateLimit` headers.
   *
   * @param response absent for a WebSocket handshake
   * @throws RateLimitedError
   */
  admit(request: IncomingMessage, caller: Caller, response?: ServerResponse): void {
    if (caller === ANONYMOUS) return this.admitStranger(request, response);
    const { keyId, accountId, limits = this.env.accountLimits } = caller;
    this.apply(
      [
        { name: 'key', count: this.counter.add(keyId), max: limits.keyRequestsPerMinute },
        { name: 'account', count: this.counter.add(accountId), max: limits.requestsPerMinute },
      ],
      response,
    );
  }

  /** Counts a request without a key by its address. @throws RateLimitedError */
  admitStranger(request: IncomingMessage, response?: ServerResponse): void {
    const address = this.addressOf(request);
    if (address === null) return;
    const count = this.counter.add(address);
    this.apply([{ name: 'address', count, max: this.env.requestsPerAddress }], response);
  }

  /** Counts a call among those that its account has at work, until it is answered. @throws RateLimitedError */
  beginCall({ accountId, limits = this.env.accountLimits }: Caller, response: ServerResponse): void {
    const end = this.calls.enter(accountId, limits.callsAtOnce);
    if (!end) {
      throw new RateLimitedError(`This account has ${limits.callsAtOnce} calls at work, the limit of a process`, 1);
    }
    // A response whose client has left emits no further event.
    if (response.destroyed) end();
    else response.once('close', end);
  }

  /**
   * Counts a request that was refused, by its address. A valid key from the same address is never refused for it.
   *
   * @returns the error to answer: `error` itself, or that of too many failures or requests
   */
  async refusal(error: unknown, request: IncomingMessage, response?: ServerResponse): Promise<unknown> {
    if (!(error instanceof UnauthenticatedError)) return error;
    const address = this.addressOf(request);
    if (address === null) return error;
    if (error.isAttempt) {
      const surplus = (await this.counter.addFailure(address)) - this.env.authFailuresMax;
      if (surplus > 0) {
        const seconds = Math.min(2 ** (surplus - 1), FAILURE_WAIT_SECONDS_MAX);
        return new RateLimitedError(
          `Too many requests without a valid key from this address. ${error.message}`,
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

  /** The client's address; null for a trusted proxy that names no client. */
  private addressOf(request: IncomingMessage): string | null {
    const { trustProxy } = this.env;
    const address = clientAddress(request, trustProxy);
    return isTrusted(address, trustProxy) ? null : peerOf(address);
  }

  private apply(limits: Counted[], response: ServerResponse | undefined): void {
    const seconds = this.counter.secondsLeft;
    let policies = '';
    let states = '';
    for (const { name, count, max } of limits) {
      const separator = policies === '' ? '' : ', ';
      policies += `${separator}"${name}";q=${max};w=${WINDOW_SECONDS}`;
      states += `${separator}"${name}";r=${Math.max(0, max - count)};t=${seconds}`;
    }
    response?.setHeader('ratelimit-policy', policies);
    response?.setHeader('ratelimit', states);
    const exceeded = limits.find(({ count, max }) => count > max);
    if (!exceeded) return;
    const { name, max } = exceeded;
    throw new RateLimitedError(`This ${name} has sent ${max} requests in this minute, its limit`, seconds);
  }
}
