/**
 * The cookie holds a random secret, the table its SHA-256, so every process knows every session, and a sign-out takes effect in all of them
 * at the same time. The cookie opens pages only: REST, MCP and run endpoints read only the header `Authorization`.
 *
 * Cookie: `__Host-slipway-session` over https, `slipway-session` over http; HttpOnly, SameSite=Lax. It outlives the session, whose row
 * decides: 14 days after the last use, and no longer than the API key or the hours that it began with.
 */
import { Injectable } from '@nestjs/common';
import type { Actor } from '../../platform/database/actor.js';
import { readMemberships } from '../auth/memberships.access.js';
import { hashSecret, isSecret, newSecret } from '../../platform/http/secrets.js';
import { SESSION_COOKIE, type OwnCookie } from '../../platform/pages/browser-cookie.js';
import type { ClientContext } from '../../platform/pages/client-context.js';
import { AccountLimitsService } from '../auth/account-limits.service.js';
import { ApiKeysService } from '../auth/api-keys.service.js';
import type { SessionCaller, SessionSource } from '../auth/access.types.js';
import { PeopleRepository, type NewSession, type ShownSession } from './people.repository.js';

const AGENT_CHARS_MAX = 200;

/** Lifetime of the cookie, the maximum that Chromium allows. */
const COOKIE_SECONDS = 400 * 24 * 60 * 60;

@Injectable()
export class SessionsService implements SessionSource {
  constructor(
    private readonly peopleRepository: PeopleRepository,
    private readonly apiKeysService: ApiKeysService,
    private readonly accountLimitsService: AccountLimitsService,
  ) {}

  /**
   * Returns the session of a browser, by one query, or none without the cookie.
   *
   * @returns null without a cookie and without a valid session
   */
  async current({ sessionSecret }: Pick<ClientContext, 'sessionSecret'>): Promise<SessionCaller | null> {
    const row = isSecret(sessionSecret) ? await this.peopleRepository.current(hashSecret(sessionSecret)) : null;
    if (!row) return null;
    const { rootKeyId, overrides, roles, ...person } = row;
    return {
      ...person,
      rootKeyId: rootKeyId ?? undefined,
      scopes: null,
      memberships: readMemberships(roles),
      limits: this.accountLimitsService.limitsOf(overrides),
    };
  }

  validAmong(ids: string[]): Promise<Set<string>> {
    return this.peopleRepository.validAmong(ids);
  }

  /**
   * Replaces the session that the browser had.
   *
   * @returns the cookie for the browser; null when the account was disabled, or the key or password was revoked meanwhile
   */
  async begin(
    { address, userAgent, sessionSecret }: ClientContext,
    person: Pick<NewSession, 'accountId' | 'keyId' | 'passwordHash' | 'hours'>,
  ): Promise<OwnCookie | null> {
    const secret = newSecret();
    const session = { ...person, hash: hashSecret(secret), address, agent: userAgent.slice(0, AGENT_CHARS_MAX) };
    const ended = isSecret(sessionSecret) ? hashSecret(sessionSecret) : null;
    if (!(await this.peopleRepository.addSession(session, ended))) return null;
    return { name: SESSION_COOKIE, value: secret, seconds: COOKIE_SECONDS };
  }

  /** @returns the cookie for the browser */
  async signOut({ sessionSecret }: ClientContext): Promise<OwnCookie> {
    if (isSecret(sessionSecret)) await this.peopleRepository.endSession(hashSecret(sessionSecret));
    return { name: SESSION_COOKIE, value: '', seconds: 0 };
  }

  /** Signs out all browsers of the user. @returns the cookie for this browser */
  async endEverywhere(client: ClientContext): Promise<OwnCookie> {
    const person = await this.current(client);
    if (person) await this.endAll(person);
    return this.signOut(client);
  }

  endAll(actor: Actor): Promise<void> {
    return this.peopleRepository.endSessionsOf(actor);
  }

  /** Closes sessions, except those that another service signed in, and those of operators with a key. */
  endOthers(): Promise<void> {
    return this.peopleRepository.endOtherSessions();
  }

  /** @returns false when the session no longer exists or belongs to another account */
  endById(actor: Actor, id: string, accountId: string): Promise<boolean> {
    return this.peopleRepository.endSessionById(actor, id, accountId);
  }

  /** Lists sessions, the most recently used browser first. */
  list(accountId: string): Promise<ShownSession[]> {
    return this.peopleRepository.sessionsOf(accountId);
  }
}
