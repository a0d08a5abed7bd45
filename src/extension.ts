/**
 * The entry point `slipway`: everything that a module outside the tree may import. Everything else may change at any time.
 */
export { Env } from './config/env.js';
export type { Role } from './config/env.js';
export { roleModule } from './config/role-module.js';
export { Access, CurrentAccountId, CurrentCaller, CurrentNamespace } from './modules/auth/access.decorator.js';
export { CurrentPage, Page, type PageRequest } from './modules/auth/access.decorator.js';
export { AccessGuard } from './modules/auth/access.guard.js';
export type { AccessRule, Action, Caller, OwnedNamespace, Scope } from './modules/auth/access.types.js';
export { visibleTo } from './modules/auth/visible-servers.access.js';

export { Accounts } from './modules/extension-api/accounts.facade.js';
export { Connections } from './modules/extension-api/connections.facade.js';
export { asSystem, type FacadeCaller } from './modules/extension-api/facade.types.js';
export { Http, type HttpOptions } from './modules/extension-api/http.facade.js';
export { Logs } from './modules/extension-api/logs.facade.js';
export { Secrets } from './modules/extension-api/secrets.facade.js';
export { Servers } from './modules/extension-api/servers.facade.js';
export { Tools, type ToolTarget } from './modules/extension-api/tools.facade.js';
export { invocationId, timeProblem } from './modules/logs/ingest/ingest-limits.js';
export type { IngestedInvocation, InvocationOutcome, LogException, LogLine } from './modules/logs/invocation.types.js';
export { NamespaceNotFoundError } from './modules/namespaces/namespaces.errors.js';
export { ServerCardField } from './modules/servers/server-card.decorator.js';
export type { ServerCardContributor, ServerCardFieldOptions } from './modules/servers/server-card.decorator.js';
export { ApiServerName, ownServerOrNone, TargetServer } from './modules/servers/server.decorator.js';
export type { ServerOffers, ServerRef } from './modules/servers/server.types.js';
export { NotServerOwnerError, ServerNotFoundError } from './modules/servers/servers.errors.js';
export { ServersModule } from './modules/servers/servers.module.js';
export type { TargetName } from './modules/targets/target.types.js';
export { isForeignKeyViolation, isUniqueViolation } from './platform/database/postgres-errors.js';
export { ConflictError, DomainError, type ErrorKind, ForbiddenError } from './platform/errors/domain-error.js';
export { InvalidInputError, NotFoundError } from './platform/errors/domain-error.js';
export { defineModule, type ExternalModule } from './platform/external-modules/load-external-modules.js';
export { ApiErrors } from './platform/http/api-docs.decorators.js';
export { decodeCursor, encodeCursor } from './platform/http/cursor.js';
export { readBytes } from './platform/http/body/request-body.js';
export { checkedBody, UuidOr404 } from './platform/http/input.pipe.js';
export { IsFlag, IsPrintable, IsText, IsWhole } from './platform/http/input-values.js';
export { PageQueryDto, pageOf, PaginationDto } from './platform/http/pagination.dto.js';
export { Public } from './platform/http/public.decorator.js';
export { IsTime } from './platform/http/time-text.js';
export { FramedPage, type Framed } from './platform/pages/frame.js';
export { html, type Html } from './platform/pages/html.js';
export { timeOf } from './platform/pages/times.js';
export { HOUR_MS, scheduledDeletion } from './platform/schedule/schedule.js';
