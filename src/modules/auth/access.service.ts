import type { IncomingMessage } from 'node:http';
import { Injectable, type OnModuleInit, type Type } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { Env, StartError } from '../../config/env.js';
import type { Route } from '../../platform/http/route-table.js';
import { ACCESS } from '../../platform/http/public.decorator.js';
import { partOf } from '../../platform/parts.js';
import { didYouMean } from '../../platform/text/nearest.js';
import { DomainError, ForbiddenError, NotFoundError } from '../../platform/errors/domain-error.js';
import type { BrowserRequest } from '../../platform/pages/page.filter.js';
import {
  actionOf,
  ANONYMOUS,
  MEMBER_GRANT,
  type AccessRule,
  type Action,
  type Caller,
  type FoundGrant,
  type Grant,
  type GuardedTarget,
  GrantSource,
  type RuleParameters,
  SessionSource,
  TokenSource,
} from './access.types.js';
import { ApiKeysService } from './api-keys.service.js';
import {
  GrantLevelError,
  KeyScopeError,
  NotOperatorError,
  RoleError,
  SignedOutError,
  SuspendedError,
  ToolsOnlyError,
  UnauthenticatedError,
} from './auth.errors.js';
import { hasKeyPrefix } from './api-key.js';
import { namespaceNamed, type Target, type TargetName } from '../targets/target.types.js';
import { TargetsService } from '../targets/targets.service.js';
import { accountOwns, accountsWith, covers, coversSomewhere, decide } from './may.js';

interface OwnedQuestion {
  action: Action;
  name: string;
  target: TargetName;
}

export interface AccessFacts {
  namespace: (name: string) => Promise<Target | null> | Target | null;
  grant: (accountId: string, target: TargetName) => Promise<FoundGrant | null> | FoundGrant | null;
}

const BEARER = /^Bearer +(\S+?)[ ,;]*$/i;

/** Decides access, for the HTTP guard, the fast path and the MCP endpoints. */
@Injectable()
export class AccessService implements OnModuleInit {
  private grants!: GrantSource;
  private tokens!: TokenSource | null;
  private sessions!: SessionSource;
  private readonly members = new WeakMap<Caller, Caller>();
  private readonly accessFacts: AccessFacts = {
    namespace: (name) => this.targetsService.findNamespace(name),
    grant: (accountId, target) => this.grants.find(accountId, target),
  };

  constructor(
    private readonly apiKeysService: ApiKeysService,
    private readonly targetsService: TargetsService,
    private readonly env: Env,
    private readonly moduleRef: ModuleRef,
  ) {}

  onModuleInit(): void {
    this.grants = partOf(this.moduleRef, GrantSource);
    this.tokens = partOf(this.moduleRef, TokenSource);
    this.sessions = partOf(this.moduleRef, SessionSource);
  }

  /**
   * Returns the caller of a request, by its Authorization header; a promise for a credential that is not cached. An empty bearer counts as
   * no header (published clients send it). An OAuth token opens only the MCP endpoint it was issued for. Pages read only the cookie,
   * everything else only the header.
   *
   * @throws UnauthenticatedError; SignedOutError for a page
   */
  authenticate(request: IncomingMessage, rule?: AccessRule): Caller | Promise<Caller> {
    if (rule?.page) return this.signedIn(request as IncomingMessage & BrowserRequest);
    const header = request.headers.authorization;
    if (header === undefined || /^Bearer *$/i.test(header)) {
      if (rule?.anonymous && this.env.publicReads) return ANONYMOUS;
      throw UnauthenticatedError.missing(this.tokens?.challenge(request));
    }
    const bearer = BEARER.exec(header)?.[1];
    if (bearer === undefined) throw UnauthenticatedError.malformed(this.tokens?.challenge(request));
    if (!this.tokens || hasKeyPrefix(bearer)) return this.apiKeysService.verify(bearer, request);
    return this.tokens.verify(bearer, request);
  }

  private async signedIn(request: IncomingMessage & BrowserRequest): Promise<Caller> {
    const caller = await this.sessions.current(request.client);
    if (!caller) throw new SignedOutError(request.url ?? '/', this.pageOf(request));
    request.signedIn = caller;
    return caller;
  }

  private pageOf({ method, url = '/', headers: { referer = '' } }: IncomingMessage): string {
    if (method === 'GET' || method === 'HEAD') return url;
    const { baseUrl } = this.env;
    return referer.startsWith(`${baseUrl}/`) ? referer.slice(baseUrl.length) : '/ui/';
  }

  /** Returns the name of the caller's key; its id if the key was revoked since. */
  async keyName({ keyId }: Caller): Promise<string> {
    return (await this.apiKeysService.nameOf(keyId)) ?? keyId;
  }

  /**
   * Returns true if the caller's account owns the target or has a grant, or the target is public, and the key has the right.
   *
   * @throws KeyScopeError when only the key lacks the right
   */
  isAllowed(caller: Caller, action: Action, target: GuardedTarget): boolean {
    const decision = decide(caller, action, target);
    if (decision === 'scope') throw new KeyScopeError(action, target.namespace);
    return decision === 'yes';
  }

  /** Works like {@link isAllowed} for a server or connection, including the grants of the caller's account: at most 5 s old. */
  async mayUse(caller: Caller, action: Action, target: TargetName & Pick<Target, 'ownerId'>): Promise<boolean> {
    const { ownerId, namespace } = target;
    if (this.isAllowed(caller, action, { ownerId, namespace })) return true;
    const grant = caller === ANONYMOUS ? null : await this.grants.find(caller.accountId, target);
    return this.isAllowed(caller, action, { ownerId, namespace, granted: grant?.level });
  }

  /**
   * Returns true for the caller's own account and organizations where its role allows the action, whatever the scopes
   * of the key: for filters and names.
   */
  owns(caller: Caller, action: Action, ownerId: string): boolean {
    return accountOwns(caller, action, ownerId);
  }

  accountsWith(caller: Caller, action: Action): string[] {
    return accountsWith(caller, action);
  }

  namespacesOf(accountId: string): Promise<string[]> {
    return this.targetsService.namespacesOf([accountId]);
  }

  /** @throws KeyScopeError when the key lacks a right for all namespaces of its account */
  requireForAll(caller: Caller, action: Action): void {
    this.requireScope(caller, action, null);
  }

  /** @throws KeyScopeError when the key lacks a right in this namespace, whoever owns it */
  requireScope({ scopes }: Caller, action: Action, namespace: string | null): void {
    if (scopes !== null && !covers(scopes, action, namespace)) throw new KeyScopeError(action, namespace);
  }

  /**
   * Checks whether `caller` can use a route with this rule on this target. Returns a promise if it needs a query. If a grant opens the
   * route, the caller of the result has that grant, and its namespace is the owner's.
   *
   * @throws DomainError the rule's `missing` or `foreign`; ForbiddenError for an operator's route; KeyScopeError, GrantLevelError
   */
  authorize(caller: Caller, rule: AccessRule, target: RuleParameters): Grant | Promise<Grant> {
    const action = actionOfRule(rule);
    if (rule.operator) {
      const isFounder = rule.founders && (caller.limits ?? this.env.accountLimits).organizations > 0;
      if (!caller.isOperator && !isFounder) throw new NotOperatorError();
      this.requireForAll(caller, action);
    }
    if (rule.account !== undefined) {
      const accountId = target.account === 'me' ? caller.accountId : String(target.account);
      const role = caller.memberships.get(accountId);
      const isOpen = role === undefined ? accountId === caller.accountId : role === 'owner' || rule.member === true;
      if (!isOpen && !caller.isOperator && !(accountId === caller.accountId && rule.may !== 'own')) {
        throw role === undefined ? new NotFoundError('Account not found') : new RoleError(role);
      }
      this.requireForAll(caller, action);
      return { caller, accountId };
    }
    if (rule.owner === undefined) {
      // The service that finds the target of such a route calls `isAllowed`.
      if (caller.scopes && !coversSomewhere(caller.scopes, action)) throw new KeyScopeError(action, null);
      return { caller };
    }
    const question = questionOf(rule, target);
    const cached = this.targetsService.peekNamespace(question.name);
    if (cached && this.isAllowed(caller, action, cached)) {
      requireActive(action, rule, cached);
      return this.opened(caller, cached);
    }
    return this.authorizeOwned(caller, rule, question, this.accessFacts);
  }

  /** Returns true if {@link authorize} succeeds: pages show only what their reader can do. */
  async allows(caller: Caller, rule: AccessRule, target: RuleParameters): Promise<boolean> {
    try {
      await this.authorize(caller, rule, target);
      return true;
    } catch (error) {
      if (error instanceof DomainError && ['not_found', 'forbidden'].includes(error.kind)) return false;
      throw error;
    }
  }

  async authorizeOwned(
    caller: Caller,
    rule: AccessRule,
    { action, name, target }: OwnedQuestion,
    facts: AccessFacts,
  ): Promise<Grant> {
    const namespace = await facts.namespace(name);
    if (namespace && this.isAllowed(caller, action, namespace)) {
      requireActive(action, rule, namespace);
      return this.opened(caller, namespace);
    }
    // Looked up even if the namespace does not exist: otherwise the response time would reveal it.
    const find = (candidate: TargetName) => (caller === ANONYMOUS ? null : facts.grant(caller.accountId, candidate));
    // A grantee of the namespace can create a target that does not exist yet.
    const granted = (await find(target)) ?? (await find(namespaceNamed(name)));
    if (granted) {
      const { id, level, tools, namespaceId, ownerId } = granted;
      if (!this.isAllowed(caller, action, { ownerId, namespace: name, granted: level })) {
        throw new GrantLevelError(level, action);
      }
      if (tools && !rule.byTool) throw new ToolsOnlyError(tools);
      requireActive(action, rule, namespace);
      return { caller: { ...caller, grant: { id, level, tools } }, namespace: { id: namespaceId, name } };
    }
    const role = namespace && caller.memberships.get(namespace.ownerId);
    if (role && role !== 'guest') throw new RoleError(role);
    const missing = rule.missing ?? (() => new ForbiddenError('Forbidden'));
    // The advice depends only on the caller's own namespaces: foreign and missing ones get the same response.
    const error = namespace && rule.foreign ? rule.foreign() : missing();
    const names = await this.targetsService.namespacesOf(accountsWith(caller, 'discover'));
    // The caller might be able to read a server of this name, so the message names the owner's right, not the server.
    const fact =
      rule.owner === 'qualifiedName'
        ? 'Only the owner of a server may do this, and you have no such namespace.'
        : 'You have no such namespace.';
    const next = didYouMean(name, names) || ' Claim one with PUT /namespaces/{name}.';
    throw Object.assign(error, { advice: fact + next });
  }

  /** Returns the grant of a member of the organization, who sees what a grant with level `call` shows. */
  private opened(caller: Caller, { id, namespace: name, ownerId }: Target): Grant {
    const namespace = { id, name };
    if (caller.memberships.size === 0 || accountOwns(caller, 'read', ownerId)) return { caller, namespace };
    let member = this.members.get(caller);
    if (!member) this.members.set(caller, (member = { ...caller, grant: MEMBER_GRANT }));
    return { caller: member, namespace };
  }
}

export function actionOfRule(rule: AccessRule): Action {
  return rule.may ?? actionOf(rule.scope);
}

export function questionOf(rule: AccessRule, { owner = '', connectionId }: RuleParameters): OwnedQuestion {
  // Only qualified names are split: `/namespaces/acme%2Fweather` does not name the namespace acme.
  const name = rule.owner === 'qualifiedName' ? (owner.split('/', 1)[0] ?? '') : owner;
  let target: TargetName = namespaceNamed(name);
  if (rule.owner === 'qualifiedName' && !rule.inNamespace) {
    target = { namespace: name, kind: 'server', name: owner.slice(name.length + 1) };
  } else if (connectionId !== undefined) target = { namespace: name, kind: 'connection', name: connectionId };
  return { action: actionOfRule(rule), name, target };
}

function requireActive(action: Action, { serves }: AccessRule, namespace: Pick<Target, 'suspended'> | null): void {
  if ((serves || action === 'call') && namespace && namespace.suspended !== null)
    throw new SuspendedError('namespace', namespace.suspended);
}

export function declarationOf({ handler, controller }: { handler: object; controller: Type }) {
  return (Reflect.getMetadata(ACCESS, handler) ?? Reflect.getMetadata(ACCESS, controller)) as
    AccessRule | 'public' | undefined;
}

/**
 * Checks at startup that every route declares its access, names only its own parameters, and begins with a literal segment.
 *
 * @throws StartError naming every route that fails
 */
export function checkRoutes(routes: Route[]): void {
  const faults = routes.flatMap((route) => {
    const { method, path } = route;
    const declared = declarationOf(route);
    if (declared === undefined)
      return [`${method} ${path} declares neither @Access(…) nor @Public(), nor @Page(…) for a page`];
    const first = path.split('/')[1] ?? '';
    const catching = /^[:*]/.test(first)
      ? [`${method} ${path} must begin with a word: "${first}" matches every path`]
      : [];
    const params = declared === 'public' ? [] : [declared.owner, declared.account];
    const unknown = params.filter((param) => param !== undefined && !path.split('/').includes(`:${param}`));
    return [...catching, ...unknown.map((param) => `${method} ${path} has no parameter "${param}" to check`)];
  });
  if (faults.length > 0) throw new StartError(faults.join('\n'));
}
