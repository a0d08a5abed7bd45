import type { IncomingMessage } from 'node:http';
import { Injectable, type Type } from '@nestjs/common';
import { Env, StartError } from '../../config/env.js';
import type { Route } from '../../platform/http/route-table.js';
import { ACCESS } from '../../platform/http/public.decorator.js';
import { didYouMean } from '../../platform/text/nearest.js';
import { ForbiddenError, NotFoundError } from '../../platform/errors/domain-error.js';
import {
  actionOf,
  ANONYMOUS,
  type AccessRule,
  type AccessTarget,
  type Action,
  type Caller,
  type Grant,
  type GrantedThing,
  type GrantSource,
  type NamespaceOwners,
  type OwnedThing,
  type Person,
  type Target,
  type TokenSource,
} from './access.types.js';
import { ApiKeysService } from './api-keys.service.js';
import { GrantLevelError, KeyScopeError, UnauthenticatedError } from './auth.errors.js';
import { hasKeyPrefix } from './api-key.js';
import { covers, coversSomewhere, decide } from './may.js';

const BEARER = /^Bearer +(\S+) *$/i;

/** Decides access, for the HTTP guard, the fast path and the MCP endpoints. */
@Injectable()
export class AccessService {
  private owners: NamespaceOwners | null = null;
  private grants: GrantSource | null = null;
  private tokens: TokenSource | null = null;

  constructor(
    private readonly keys: ApiKeysService,
    private readonly env: Env,
  ) {}

  /** Sets the source of namespace owners; the namespaces module calls it at start. */
  useNamespaceOwners(owners: NamespaceOwners): void {
    this.owners = owners;
  }

  /** Sets the source of grants; the grants module calls it at start. */
  useGrants(grants: GrantSource): void {
    this.grants = grants;
  }

  /** Sets the source of OAuth tokens; the authorization server calls it at start, if it is on. */
  useTokens(tokens: TokenSource): void {
    this.tokens = tokens;
    this.keys.useTokens(tokens);
  }

  /**
   * The caller of a request, by its Authorization header; a promise for a credential that is not cached. An empty bearer counts
   * as no header (published clients send it). An OAuth token opens the MCP endpoint that it was given for and nothing else.
   *
   * @param rule the route's rule, which may allow anonymous reads
   * @throws UnauthenticatedError
   */
  authenticate(request: IncomingMessage, rule?: AccessRule): Caller | Promise<Caller> {
    const header = request.headers.authorization;
    if (header === undefined || /^Bearer *$/i.test(header)) {
      if (rule?.anonymous && this.env.publicReads) return ANONYMOUS;
      throw UnauthenticatedError.missing(this.tokens?.challenge(request));
    }
    const bearer = BEARER.exec(header)?.[1];
    if (bearer === undefined) throw UnauthenticatedError.malformed(this.tokens?.challenge(request));
    if (!this.tokens || hasKeyPrefix(bearer)) return this.keys.verify(bearer, request);
    return this.tokens.verify(bearer, request);
  }

  /** The name of the key that the caller uses; its id if it was revoked since. */
  async keyName({ keyId }: Caller): Promise<string> {
    return (await this.keys.nameOf(keyId)) ?? keyId;
  }

  /**
   * True if the account of the caller owns the target, it is public, or it was granted, and the key has the right.
   *
   * @throws KeyScopeError when only the key lacks the right
   */
  may(caller: Caller, action: Action, target: Target): boolean {
    const decision = decide(caller, action, target);
    if (decision === 'scope') throw new KeyScopeError(action, target.namespace);
    return decision === 'yes';
  }

  /** The caller of what the person of an account does on a page, at most 5 s old; null for a disabled account. */
  callerOf(accountId: string): Promise<Person | null> {
    return this.keys.callerOf(accountId);
  }

  /** {@link may} for a server or connection, with what was granted to the account of the caller: at most 5 s old. */
  async mayUse(caller: Caller, action: Action, thing: OwnedThing): Promise<boolean> {
    const { ownerId, namespace } = thing;
    if (this.may(caller, action, { ownerId, namespace })) return true;
    const found = await this.grants?.find(caller.accountId, thing);
    return this.may(caller, action, { ownerId, namespace, granted: found?.level });
  }

  /** True for the caller's own account, whatever the key may do: for filters of lists and for names. */
  owns({ accountId }: Caller, ownerId: string): boolean {
    return accountId === ownerId;
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
   * Checks whether `caller` may use a route with this rule on this target. A promise where it takes a query. Where a grant
   * opens it, the caller of the result has that grant, and its namespace is the owner's.
   *
   * @throws DomainError the rule's `missing` or `foreign`; ForbiddenError for an operator's route; KeyScopeError,
   * GrantLevelError
   */
  authorize(caller: Caller, rule: AccessRule, target: AccessTarget): Grant | Promise<Grant> {
    const action = rule.own ? 'own' : rule.discover ? 'discover' : actionOf(rule.scope);
    if (rule.operator) {
      if (!caller.isOperator) throw new ForbiddenError('Forbidden: only the operator manages accounts');
      this.requireForAll(caller, action);
    }
    if (rule.account !== undefined) {
      const isOwn = target.account === 'me' || target.account === caller.accountId;
      if (!isOwn && !caller.isOperator) throw new NotFoundError('Account not found');
      const accountId = isOwn ? caller.accountId : String(target.account);
      this.requireForAll(caller, action);
      return { caller, accountId };
    }
    if (rule.owner === undefined) {
      // The service that finds the target of such a route asks `may` about it.
      if (caller.scopes && !coversSomewhere(caller.scopes, action)) throw new KeyScopeError(action, null);
      return { caller };
    }
    const owner = target.owner ?? '';
    // Only qualified names are split: `/namespaces/acme%2Fweather` does not name the namespace acme.
    const name = rule.owner === 'qualifiedName' ? (owner.split('/', 1)[0] ?? '') : owner;
    const cached = this.owners?.peek(name);
    if (cached && this.may(caller, action, { ownerId: cached.accountId, namespace: name })) {
      return { caller, namespace: { id: cached.id, name } };
    }
    // The server or connection that the path names; null where a path names none, so that no grant can open it.
    const { connectionId } = target;
    let thing: GrantedThing | null = null;
    if (rule.owner === 'qualifiedName') {
      thing = { namespace: name, kind: 'server', name: owner.slice(name.length + 1) };
    } else if (connectionId !== undefined) thing = { namespace: name, kind: 'connection', name: connectionId };
    return this.authorizeOther(caller, rule, action, name, thing);
  }

  private async authorizeOther(
    caller: Caller,
    rule: AccessRule,
    action: Action,
    name: string,
    thing: GrantedThing | null,
  ): Promise<Grant> {
    const owner = await this.owners?.find(name);
    if (owner && this.may(caller, action, { ownerId: owner.accountId, namespace: name })) {
      return { caller, namespace: { id: owner.id, name } };
    }
    // Asked also where there is no such namespace: otherwise the time of the answer would tell.
    const granted = thing && (await this.grants?.find(caller.accountId, thing));
    if (granted) {
      const { id, level, namespaceId, ownerId } = granted;
      if (!this.may(caller, action, { ownerId, namespace: name, granted: level })) {
        throw new GrantLevelError(level, action);
      }
      return { caller: { ...caller, grant: { id, level } }, namespace: { id: namespaceId, name } };
    }
    const missing = rule.missing ?? (() => new ForbiddenError('Forbidden'));
    // The advice depends on the caller's own namespaces only: a foreign one looks like a missing one.
    const error = owner && rule.foreign ? rule.foreign() : missing();
    if (error.kind !== 'not_found') throw error;
    const names = (await this.owners?.namesOf(caller.accountId)) ?? [];
    // Of a server that the caller may read, only what is its owner's is missing.
    const fact =
      rule.owner === 'qualifiedName'
        ? 'Only the owner of a server may do this, and you have no such namespace.'
        : 'You have no such namespace.';
    throw Object.assign(error, { advice: `${fact}${didYouMean(name, names)}` });
  }
}

/** The access declaration of a route, on its method or its class. */
export function declarationOf({ handler, controller }: { handler: object; controller: Type }) {
  return (Reflect.getMetadata(ACCESS, handler) ?? Reflect.getMetadata(ACCESS, controller)) as
    AccessRule | 'public' | undefined;
}

/**
 * Checks at start that every route declares its access, names only parameters it has, and begins with a literal segment.
 *
 * @throws StartError naming every route that fails
 */
export function checkRoutes(routes: Route[]): void {
  const faults = routes.flatMap((route) => {
    const { method, path } = route;
    const declared = declarationOf(route);
    if (declared === undefined) return [`${method} ${path} declares neither @Access(…) nor @Public()`];
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
