/**
 * Sessions of people in a browser. The cookie has a random secret, the table its SHA-256, so every process knows every session
 * and a sign-out counts in all of them at once. The cookie opens pages only, as the caller of `@Page`: REST, MCP and run endpoints
 * read the header `Authorization` and nothing else.
 *
 * Cookie: `__Host-slipway-session` over https, `slipway-session` over http; HttpOnly, SameSite=Lax. It outlives the session,
 * whose row decides: 14 days from the last use on, and not longer than the API key that it began with.
 */
import type { IncomingMessage } from 'node:http';
import { Injectable } from '@nestjs/common';
import { readMemberships } from '../auth/memberships.access.js';
import type { Request, Response } from 'express';
import { Env } from '../../config/env.js';
import { clientAddress } from '../../platform/http/client-address.js';
import { hashSecret, isSecret, newSecret } from '../../platform/http/secrets.js';
import { readOwnCookie, sendOwnCookie, SESSION_COOKIE } from '../../platform/pages/browser-cookie.js';
import { AccountLimitsService } from '../auth/account-limits.service.js';
import { ApiKeysService } from '../auth/api-keys.service.js';
import type { SessionCaller, SessionSource } from '../auth/access.types.js';
import { PeopleRepository, type NewSession, type ShownSession, type SignedInRow } from './people.repository.js';

const AGENT_CHARS_MAX = 200;

/** Chromium keeps no cookie for longer. */
const COOKIE_SECONDS = 400 * 24 * 60 * 60;

/** Begins, reads and ends sessions. */
@Injectable()
export class SessionsService implements SessionSource {
  constructor(
    private readonly peopleRepository: PeopleRepository,
    private readonly apiKeysService: ApiKeysService,
    private readonly accountLimitsService: AccountLimitsService,
    private readonly env: Env,
  ) {}

  /**
   * The person who is signed in at the browser that sent a request. Takes one query, none without the cookie.
   *
   * @returns null for no, an unknown or an expired session, for one of a disabled account, and for one that began with an API
   * key that was revoked or has expired
   */
  async current(request: IncomingMessage): Promise<SignedInRow | null> {
    const hash = this.hashOf(request);
    return hash && this.peopleRepository.current(hash);
  }

  async callerOf(request: IncomingMessage): Promise<SessionCaller | null> {
    const session = await this.current(request);
    if (!session) return null;
    const { accountId, accountName, isOperator, sessionId, keyId, loginsEpoch, overrides, roles } = session;
    return {
      accountId,
      accountName,
      keyId: sessionId,
      rootKeyId: keyId ?? undefined,
      isSession: true,
      isOperator,
      scopes: null,
      memberships: readMemberships(roles),
      limits: this.accountLimitsService.limitsOf(overrides),
      loginsEpoch,
    };
  }

  validAmong(ids: string[]): Promise<Set<string>> {
    return this.peopleRepository.validAmong(ids);
  }

  /**
   * Signs a person in: with a new secret, and in place of the session that the browser had.
   *
   * @returns false when the account was disabled, or the key or password ended, in the meantime
   */
  async begin(
    request: Request,
    response: Response,
    { accountId, keyId, passwordHash }: Pick<NewSession, 'accountId' | 'keyId' | 'passwordHash'>,
  ): Promise<boolean> {
    const secret = newSecret();
    const address = clientAddress(request, this.env.trustProxy);
    const agent = (request.headers['user-agent'] ?? '').slice(0, AGENT_CHARS_MAX);
    const session = { hash: hashSecret(secret), accountId, keyId, passwordHash, address, agent };
    if (!(await this.peopleRepository.addSession(session, this.hashOf(request)))) return false;
    sendOwnCookie(this.env, response, SESSION_COOKIE, secret, { seconds: COOKIE_SECONDS });
    return true;
  }

  /** Signs this browser out. */
  async signOut(request: Request, response: Response): Promise<void> {
    const hash = this.hashOf(request);
    if (hash) await this.peopleRepository.endSession(hash);
    sendOwnCookie(this.env, response, SESSION_COOKIE, '', { seconds: 0 });
  }

  /** Signs all browsers of this browser's person out. */
  async endEverywhere(request: Request, response: Response): Promise<void> {
    const person = await this.current(request);
    if (person) await this.peopleRepository.endSessionsOf(person.accountId);
    await this.signOut(request, response);
  }

  /** Signs a browser out by the id of its session. @returns false when it is gone, or of another account */
  endById(id: string, accountId: string): Promise<boolean> {
    return this.peopleRepository.endSessionById(id, accountId);
  }

  /** The browsers that are signed in as an account, the last used first. */
  list(accountId: string): Promise<ShownSession[]> {
    return this.peopleRepository.sessionsOf(accountId);
  }

  private hashOf({ headers }: IncomingMessage): Buffer | null {
    const secret = readOwnCookie(this.env, headers.cookie, SESSION_COOKIE);
    return isSecret(secret) ? hashSecret(secret) : null;
  }
}
