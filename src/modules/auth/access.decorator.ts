import { applyDecorators, createParamDecorator, SetMetadata, UseFilters, type ExecutionContext } from '@nestjs/common';
import { ApiBearerAuth, ApiExcludeEndpoint, ApiExtension } from '@nestjs/swagger';
import type { CountedRequest } from '../../mcp/server/mcp-request.js';
import { ACCESS } from '../../platform/http/public.decorator.js';
import { PageFilter } from '../../platform/pages/page.js';
import type { AccessRule, Caller, Grant, OwnedNamespace, Scope, SessionCaller } from './access.types.js';

/** Metadata key of a route on the fast path. */
export const FAST_PATH = 'slipway:fast-path';

/** The request of a {@link FastPath} handler. `*name` parameters are arrays of decoded segments. */
export type FastPathRequest = CountedRequest & GrantedRequest & { params: Record<string, string | string[]> };

/** A request after the guard. */
export interface GrantedRequest {
  grant: Grant;
}

/** Declares who may use a route. The start fails for a route without this or `@Public()`. */
export function Access(scope: Scope, rule: Omit<AccessRule, 'scope' | 'page'> = {}): MethodDecorator {
  return applyDecorators(
    SetMetadata(ACCESS, { scope, ...rule } satisfies AccessRule),
    ApiBearerAuth('apiKey'),
    ApiExtension('x-scope', scope),
  );
}

/**
 * Declares who may use a page: as {@link Access}, with the session of the browser in place of the header. The guard refuses a
 * foreign `Host`, leads to the sign-in who is not signed in, and takes a form only from a page of ours in the same browser. Errors
 * are pages. The route is no part of the API document.
 */
export function Page(scope: Scope, rule: Omit<AccessRule, 'scope' | 'page'> = {}): MethodDecorator {
  return applyDecorators(
    SetMetadata(ACCESS, { scope, ...rule, page: true } satisfies AccessRule),
    UseFilters(PageFilter),
    ApiExcludeEndpoint(),
  );
}

function grantOf(context: ExecutionContext): Grant {
  return context.switchToHttp().getRequest<GrantedRequest>().grant;
}

/** The caller that {@link Access} let in. */
export const CurrentCaller = createParamDecorator((_: unknown, context: ExecutionContext): Caller => {
  return grantOf(context).caller;
});

/** The person that {@link Page} let in. */
export const CurrentPerson = createParamDecorator((_: unknown, context: ExecutionContext): SessionCaller => {
  return grantOf(context).caller as SessionCaller;
});

/** The values of a form that a page sent, as `URLSearchParams`. The guard read and checked them. */
export const SentForm = createParamDecorator((_: unknown, context: ExecutionContext): URLSearchParams => {
  return context.switchToHttp().getRequest<{ body: URLSearchParams }>().body;
});

/** The namespace of an `owner` rule. */
export const CurrentNamespace = createParamDecorator((_: unknown, context: ExecutionContext): OwnedNamespace => {
  const { namespace } = grantOf(context);
  if (!namespace) throw new Error('@CurrentNamespace() needs an owner rule');
  return namespace;
});

/** The account of an `account` rule, with `me` resolved. */
export const CurrentAccountId = createParamDecorator((_: unknown, context: ExecutionContext): string => {
  const { accountId } = grantOf(context);
  if (accountId === undefined) throw new Error('@CurrentAccountId() needs an account rule');
  return accountId;
});

/**
 * Serves a route ahead of Express and Nest's pipeline, which cost about as much as the rest of a tool call or of the read of
 * a server. The route is declared, documented and authorized like any other. Its handler gets the raw request, with `params`
 * and `grant`, and the raw response; errors are answered in the format of its path. Guards, pipes, interceptors and exception
 * filters do not run, so the start fails for a route that has one.
 */
export function FastPath(): MethodDecorator {
  return SetMetadata(FAST_PATH, true);
}
