import {
  applyDecorators,
  createParamDecorator,
  SetMetadata,
  UseFilters,
  UseInterceptors,
  type ExecutionContext,
} from '@nestjs/common';
import { ApiBearerAuth, ApiExcludeEndpoint, ApiExtension, ApiParam } from '#api-docs';
import type { Request } from 'express';
import type { CountedRequest } from '../../mcp/server/mcp-request.js';
import { ACCESS } from '../../platform/http/public.decorator.js';
import type { ClientContext } from '../../platform/pages/client-context.js';
import type { FormParts, FormRules, SentForm } from '../../platform/pages/page-forms.service.js';
import { PageFilter, type BrowserRequest } from '../../platform/pages/page.filter.js';
import type { ShownOnce } from '../../platform/pages/shown-once.js';
import type { AccessRule, AccessTerms, Caller, Grant, OwnedNamespace, Scope, SessionCaller } from './access.types.js';
import { PageInterceptor } from './page.interceptor.js';

export const FAST_PATH = 'slipway:fast-path';

export const PUBLIC_PAGE = 'slipway:public-page';

/** The request of a {@link FastPath} handler. `*name` parameters are arrays of decoded segments. */
export type FastPathRequest = CountedRequest & GrantedRequest & { params: Record<string, string | string[]> };

export interface GrantedRequest {
  grant: Grant;
}

const accountParams = new Map([
  ['accountId', { description: "The account's id, or `me` for your own.", example: 'me' }],
  [
    'organizationId',
    { description: "The organization's account id.", example: '9b2f7c0e-51a3-4c9d-8e55-2f0d6c7b8a91' },
  ],
]);

/** Declares who can use a route. Startup fails for a route without this or `@Public()`. */
export function Access(scope: Scope, terms: AccessTerms = {}): MethodDecorator {
  const { account } = terms;
  return applyDecorators(
    SetMetadata(ACCESS, { scope, ...terms } satisfies AccessRule),
    ...(account === undefined ? [] : [ApiParam({ name: account, ...accountParams.get(account) })]),
    ApiBearerAuth('apiKey'),
    ApiExtension('x-scope', scope),
  );
}

/**
 * Declares who can open a page: like {@link Access}, with the browser session as the credential. The guard rejects a foreign `Host` and
 * redirects to the sign-in page without a session. The handler takes the request by {@link CurrentPage} and returns a `FramedPage` or a
 * `Redirect`. Errors are pages. The API document leaves the route out.
 *
 * @param parts of a form that can also be sent as `multipart/form-data`
 */
export function Page(scope: Scope, terms: AccessTerms = {}, parts?: FormParts): MethodDecorator {
  return applyDecorators(
    SetMetadata(ACCESS, { scope, ...terms, page: true, parts } satisfies AccessRule),
    UseFilters(PageFilter),
    UseInterceptors(PageInterceptor),
    ApiExcludeEndpoint(),
  );
}

/**
 * Declares who can send a form: like {@link Page}, at an address of its own under the page. The guard reads the form and accepts it only
 * from a Slipway page in the same browser. A form with files names its `parts`; its token comes first.
 *
 * @stability preview
 */
export const Form = Page;

/**
 * Declares a page or form that needs no session; everything else is as for {@link Page}. The handler takes a
 * {@link PublicPageRequest} by {@link CurrentPage}.
 */
export function PublicPage(rules: FormRules = {}): MethodDecorator & ClassDecorator {
  return applyDecorators(
    SetMetadata(ACCESS, 'public'),
    SetMetadata(PUBLIC_PAGE, rules),
    UseFilters(PageFilter),
    UseInterceptors(PageInterceptor),
  );
}

/** The request of a page or form that needs no session. */
export interface PublicPageRequest<Params = Record<string, string>> {
  params: Params;
  query: Record<string, unknown>;
  path: string;
  originalUrl: string;
  cookies: string | undefined;
  /** Form values, read and checked by the guard; empty for a page. */
  form: URLSearchParams;
  /** The files of a form with `parts`, by name. */
  files: Record<string, Buffer>;
  client: ClientContext;
}

/** The request of a page or form. */
export interface PageRequest<Params = Record<string, string>> extends PublicPageRequest<Params> {
  person: SessionCaller;
  /** Set only if the rule has an `owner`. */
  namespace: OwnedNamespace;
  /** Values that a redirect to this page shows once; null without them. */
  once: ShownOnce | null;
}

/** Injects the {@link PageRequest} of a page or form. */
export const CurrentPage = createParamDecorator((_: unknown, context: ExecutionContext): PageRequest => {
  const { params, query, path, originalUrl, headers, body, sent, client, grant, shownOnce } = context
    .switchToHttp()
    .getRequest<
      Request<Record<string, string>, unknown, unknown> &
        BrowserRequest &
        Partial<GrantedRequest> & { sent?: SentForm; shownOnce?: ShownOnce | null }
    >();
  return {
    ...{ params, query, path, originalUrl, client },
    cookies: headers.cookie,
    form: sent?.form ?? (body instanceof URLSearchParams ? body : new URLSearchParams()),
    files: sent?.files ?? {},
    person: grant?.caller as SessionCaller,
    namespace: grant?.namespace as OwnedNamespace,
    once: shownOnce ?? null,
  };
});

function grantOf(context: ExecutionContext): Grant {
  return context.switchToHttp().getRequest<GrantedRequest>().grant;
}

/** The caller that {@link Access} authorized. */
export const CurrentCaller = createParamDecorator((_: unknown, context: ExecutionContext): Caller => {
  return grantOf(context).caller;
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
 * Serves a route ahead of Express and Nest's pipeline, which cost about as much as the rest of a tool call. Its handler gets the raw
 * request, with `params` and `grant`, and the raw response. Guards, pipes, interceptors and exception filters do not run, so startup fails
 * for a route that has one.
 */
export function FastPath(): MethodDecorator {
  return SetMetadata(FAST_PATH, true);
}
