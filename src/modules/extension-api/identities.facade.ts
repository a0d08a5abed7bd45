import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { ForbiddenError, TooManyError } from '../../platform/errors/domain-error.js';
import type { ClientContext } from '../../platform/pages/client-context.js';
import { Redirect } from '../../platform/pages/frame.js';
import type { Role, SessionCaller } from '../auth/access.types.js';
import { AccountsService } from '../auth/accounts.service.js';
import { ApiKeysService } from '../auth/api-keys.service.js';
import { MembersService } from '../auth/members.service.js';
import { RequestLimits } from '../auth/request-limits.service.js';
import { PasswordsService } from '../people/passwords.service.js';
import { SessionsService } from '../people/sessions.service.js';
import type { SignInWay } from '../people/sign-in-way.types.js';
import { SignInService } from '../people/sign-in.service.js';

/**
 * Sign-in of people by another service. The module vouches for the person at the browser: no password and no key is
 * checked here.
 *
 * @stability preview
 * @example // Signs in the employee whom a smart card identifies. export class CardsService implements OnModuleInit {
 *   constructor(private readonly identities: Identities) {}
 *
 *   onModuleInit(): void {
 *     this.identities.addWay({ name: 'card', label: 'Use your card', problem: () => this.reader.problem(), accountPart
 *     });
 *   }
 *
 *   async signIn(client: ClientContext, card: Card, next: string | null): Promise<Redirect> {
 *     return this.identities.signIn(client, await this.accountOf(card), { next, hours: 8 });
 *   } }
 */
export abstract class Identities {
  /** Adds a button to the sign-in page, and a part to the account page. */
  abstract addWay(way: SignInWay): void;

  /**
   * Makes the ways of modules the only ones: switches off passwords and invitation links, and signs out everybody who
   * used one. Operators still sign in with an API key.
   */
  abstract requireOnly(): Promise<void>;

  /** Counts the start of a sign-in by the address of the browser. @throws TooManyError after 120 in a minute */
  abstract admitStart(client: ClientContext): void;

  /**
   * Counts an attempt to sign in before it is checked, with the wrong passwords of the address.
   *
   * @returns the function to call after a successful one, which then does not count
   * @throws TooManyError after `AUTH_FAILURES_MAX` in 15 minutes
   */
  abstract admitAttempt(client: ClientContext): Promise<() => Promise<void>>;

  /** Returns the person who is signed in at a browser; null for nobody. */
  abstract signedIn(client: ClientContext): Promise<SessionCaller | null>;

  /**
   * Signs a browser in as an account, replacing an existing session. Lifts a suspension of its credentials.
   *
   * @param session `hours`: the longest life of the session; `next`: the path to redirect to, the first page unless it
   *   is a page of Slipway that needs a session
   * @throws ForbiddenError for a disabled account and an organization with members
   */
  abstract signIn(
    client: ClientContext,
    accountId: string,
    session: { hours: number; next: string | null },
  ): Promise<Redirect>;

  /**
   * Suspends the browser sessions, client authorizations and keys of an account within a transaction, until {@link
   * signIn}. They are rejected within 5 s. An operator keeps its keys, and the sessions that begin with them.
   *
   * @param reason a message for operators
   */
  abstract suspendCredentials(accountId: string, reason: string, tx: EntityManager): Promise<void>;

  /** Revokes all browser sessions of an account. */
  abstract revokeBrowserSessions(accountId: string): Promise<void>;

  /**
   * Creates the account of a person within a transaction, and returns its id. The name is `user` if nobody could choose this one,
   * and has a number at its end if it, or one that looks like it, is taken.
   */
  abstract createAccount(name: string, tx: EntityManager): Promise<string>;

  /**
   * Gives an account these memberships, and removes others that it has by `source`. Keeps memberships that people gave,
   * and the last owner. Streams that a removed one opened close within 5 s.
   *
   * @param source the name of the module
   * @param roles by the name or id of the organization
   * @returns what was not possible, as messages
   */
  abstract setMemberships(accountId: string, source: string, roles: ReadonlyMap<string, Role>): Promise<string[]>;
}

@Injectable()
export class ServiceIdentities implements Identities {
  constructor(
    private readonly accountsService: AccountsService,
    private readonly apiKeysService: ApiKeysService,
    private readonly membersService: MembersService,
    private readonly passwordsService: PasswordsService,
    private readonly requestLimits: RequestLimits,
    private readonly sessionsService: SessionsService,
    private readonly signInService: SignInService,
  ) {}

  addWay(way: SignInWay): void {
    this.signInService.ways.push(way);
  }

  requireOnly(): Promise<void> {
    this.passwordsService.isOff = true;
    return this.sessionsService.endOthers();
  }

  admitStart({ address }: ClientContext): void {
    this.requestLimits.admitStart(address);
  }

  async admitAttempt({ address }: ClientContext): Promise<() => Promise<void>> {
    const succeeded = await this.requestLimits.admitGuess(address, null);
    if (!succeeded) throw new TooManyError('Too many attempts to sign in from this address. Try again in 15 min.', 900);
    return succeeded;
  }

  signedIn(client: ClientContext): Promise<SessionCaller | null> {
    return this.sessionsService.current(client);
  }

  async signIn(
    client: ClientContext,
    accountId: string,
    { hours, next }: { hours: number; next: string | null },
  ): Promise<Redirect> {
    await this.apiKeysService.setSuspended(accountId, null);
    const cookie = await this.sessionsService.begin(client, { accountId, keyId: null, passwordHash: null, hours });
    if (!cookie) throw new ForbiddenError('This account is disabled, or belongs to an organization with members');
    return this.signInService.redirect(next, cookie);
  }

  suspendCredentials(accountId: string, reason: string, tx: EntityManager): Promise<void> {
    return this.apiKeysService.setSuspended(accountId, reason, tx);
  }

  revokeBrowserSessions(accountId: string): Promise<void> {
    return this.sessionsService.endAll({ accountId });
  }

  createAccount(name: string, tx: EntityManager): Promise<string> {
    return this.accountsService.createPerson(name, tx);
  }

  setMemberships(accountId: string, source: string, roles: ReadonlyMap<string, Role>): Promise<string[]> {
    return this.membersService.setFrom(source, accountId, roles);
  }
}
