/**
 * The entry point `@slipway/module`: everything that a module outside the tree may import. Everything else may change at any time.
 */
export { Env } from './config/env.js';
export type { Role } from './config/env.js';
export { roleModule } from './config/role-module.js';
export { Access, CurrentAccountId, CurrentCaller, CurrentNamespace } from './modules/auth/access.decorator.js';
export { CurrentPage, Page, type PageRequest } from './modules/auth/access.decorator.js';
export { CallHooks, type CallHookRunner, type HookedCall, type HookedTarget } from './mcp/client/call-hooks.js';
export { AccessGuard } from './modules/auth/access.guard.js';
export type { AccessRule, Caller, OwnedNamespace, Scope } from './modules/auth/access.types.js';
export { visibleTo } from './modules/auth/visible-servers.access.js';

export { OnEvent } from './extensions/events/on-event.decorator.js';
export { AfterCall, BeforeCall, type HookOptions } from './extensions/hooks/call-hook.decorators.js';
export type { CallEvent, ChangeEvent, EventName } from './extensions/events/event.types.js';
export { CallEvents } from './modules/logs/call.events.js';
export type { ConnectionCall, Invocation } from './modules/logs/invocation.types.js';
export { LogsModule } from './modules/logs/logs.module.js';
export { asSystem, type FacadeCaller } from './modules/extension-api/facade.types.js';
export { Logs } from './modules/extension-api/logs.facade.js';
export { invocationId, timeProblem } from './modules/logs/ingest/ingest-limits.js';
export type { IngestedInvocation, InvocationOutcome, LogException, LogLine } from './modules/logs/invocation.types.js';
export { NamespaceNotFoundError } from './modules/namespaces/namespaces.errors.js';
export { ServerCardField } from './modules/servers/server-card.decorator.js';
export type { ServerCardContributor, ServerCardFieldOptions } from './modules/servers/server-card.decorator.js';
export { ApiServerName, ownServerOrNone, TargetServer } from './modules/servers/server.decorator.js';
export type { ServerRef } from './modules/servers/server.types.js';
export { NotServerOwnerError, ServerNotFoundError } from './modules/servers/servers.errors.js';
export { ServersModule } from './modules/servers/servers.module.js';
export { isForeignKeyViolation, isUniqueViolation } from './platform/database/postgres-errors.js';
export { ConflictError, DomainError, errorOf, type ErrorKind, ForbiddenError } from './platform/errors/domain-error.js';
export { InvalidInputError, NotFoundError } from './platform/errors/domain-error.js';
export { type DecoratedMethod, DecoratedMethods } from './platform/external-modules/decorated-methods.js';
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
export { withTimeout } from './platform/limits/with-timeout.js';
export { HOUR_MS, Schedule, scheduledDeletion } from './platform/schedule/schedule.js';
