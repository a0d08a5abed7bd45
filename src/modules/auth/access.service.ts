import { Injectable, type Type } from '@nestjs/common';
import { Env } from '../../config/env.js';
import {
  ANONYMOUS,
  type AccessRule,
  type AccessTarget,
  type Caller,
  type Grant,
  type NamespaceOwners,
} from './access.types.js';
import { ApiKeysService } from './api-keys.service.js';
import { AccountNotFoundError, ForbiddenError, UnauthenticatedError } from './auth.errors.js';
import type { Route } from '../../platform/http/route-table.js';
import { ACCESS } from '../../platform/http/public.decorator.js';

const BEARER = /^Bearer +(\S+) *$/i;

/** Stops the start: a route is open by accident, or catches the paths of others. */
export class RouteDeclarationError extends Error {}

/** Where access is decided, for every door: the HTTP guard, the MCP endpoints, command lines. */
@Injectable()
export class AccessService {
  private owners: NamespaceOwners | null = null;

  constructor(
    private readonly keys: ApiKeysService,
    private readonly env: Env,
  ) {}

  /** Called once at start by the module that knows who owns a namespace. */
  useNamespaceOwners(owners: NamespaceOwners): void {
    this.owners = owners;
  }

  /**
   * The caller behind an Authorization header. An empty bearer counts as none (published clients send it).
   *
   * @param rule what is asked for: some reads may be anonymous
   * @throws UnauthenticatedError
   */
  async authenticate(header: string | undefined, rule?: AccessRule): Promise<Caller> {
    if (header === undefined || /^Bearer *$/i.test(header)) {
      if (rule?.anonymous && this.env.publicReads) return ANONYMOUS;
      throw UnauthenticatedError.missing();
    }
    const key = BEARER.exec(header)?.[1];
    if (key === undefined) throw UnauthenticatedError.invalid();
    return this.keys.verify(key);
  }

  /**
   * Whether `caller` may do what `rule` says to `target`.
   *
   * @throws DomainError the rule's `missing` or `foreign`; ForbiddenError for an operator's route
   */
  async authorize(caller: Caller, rule: AccessRule, target: AccessTarget): Promise<Grant> {
    if (rule.operator && !caller.isOperator) {
      throw new ForbiddenError('Forbidden: only the operator manages accounts');
    }
    if (rule.account !== undefined) return { caller, accountId: ownAccount(caller, target.account ?? '') };
    if (rule.owner !== undefined)
      return { caller, namespace: await this.ownNamespace(caller, rule, target.owner ?? '') };
    return { caller };
  }

  private async ownNamespace(caller: Caller, rule: AccessRule, target: string): Promise<Grant['namespace']> {
    // Only a qualified name has two parts: `/namespaces/acme%2Fweather` does not mean the namespace acme.
    const [name = ''] = rule.owner === 'qualifiedName' ? target.split('/') : [target];
    const found = await this.owners?.find(name);
    const missing = rule.missing ?? (() => new ForbiddenError('Forbidden'));
    if (!found) throw missing();
    if (found.accountId !== caller.accountId) throw (rule.foreign ?? missing)();
    return { id: found.id, name };
  }
}

function ownAccount(caller: Caller, id: string): string {
  if (id === 'me' || id === caller.accountId) return caller.accountId;
  if (!caller.isOperator) throw new AccountNotFoundError();
  return id;
}

/** The access declaration of a route, on its method or its class. */
export function declarationOf({ handler, controller }: { handler: object; controller: Type }) {
  return (Reflect.getMetadata(ACCESS, handler) ?? Reflect.getMetadata(ACCESS, controller)) as
    AccessRule | 'public' | undefined;
}

/**
 * Checked once at start, against the real route table: every route says who may use it, names only parameters it has,
 * and begins with a word of its own.
 *
 * @throws RouteDeclarationError naming every route that fails
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
  if (faults.length > 0) throw new RouteDeclarationError(faults.join('\n'));
}
