/**
 * The entry point `@slipway/module`: everything that a module outside the tree may import. Everything else may change at any time.
 * An export without `@stability` is `preview`.
 */
export { Env, LAST_BACKUP, settingDocs, StartError } from './config/env.js';
export { secretText } from './config/setting.js';
export type { Role } from './config/env.js';
export { EVENTS_EXTENSION, pairCommandOf } from './config/published-clients.js';
export { roleModule } from './config/role-module.js';
export { Tuning } from './config/tuning.js';
export { COMMIT, VERSION } from './config/version.js';
export { type CheckLine, examineService } from './service-checks.js';
export { Access, CurrentAccountId, CurrentCaller, CurrentNamespace } from './modules/auth/access.decorator.js';
export { CurrentPage, Form, Page, type PageRequest } from './modules/auth/access.decorator.js';
export { PublicPage, type PublicPageRequest } from './modules/auth/access.decorator.js';
export { CallHooks, type CallHookRunner, type HookedCall, type HookedTarget } from './mcp/client/tools/call-hooks.js';
export type { CallOrigin, Channel, McpCall, McpReply } from './mcp/protocol/channel.js';
export { deadlineIn } from './mcp/protocol/deadline.js';
export { slice } from './mcp/protocol/json-text.js';
export { listPages } from './mcp/protocol/list-pages.js';
export { UpstreamError } from './mcp/protocol/mcp-errors.js';
export { resultOf } from './mcp/protocol/messages.js';
export { rpcCode } from './mcp/protocol/protocol.js';
export { AccessGuard } from './modules/auth/access.guard.js';
export {
  roles,
  TokenSource,
  type GrantRef,
  type AccessRule,
  type Action,
  type Caller,
} from './modules/auth/access.types.js';
export type { OwnedNamespace, Role as MemberRole, Scope, SessionCaller } from './modules/auth/access.types.js';
export { pathOfEndpoint, type McpEndpoint } from './modules/auth/mcp-endpoint.access.js';
export { grantsTo } from './modules/auth/memberships.access.js';
export { namespacesOf, visibleTo } from './modules/auth/visible-servers.access.js';

export { OnEvent } from './extensions/events/on-event.decorator.js';
export { AfterCall, BeforeCall, type HookOptions } from './extensions/hooks/call-hook.decorators.js';
export { Schedule } from './extensions/schedules/schedule.decorator.js';
export { InjectSettings } from './extensions/settings/inject-settings.decorator.js';
export { PageSlot, type PageSlotOptions, type SlotComponent } from './extensions/slots/page-slot.decorator.js';
export { PageSlotMarker } from './extensions/slots/page-slot.decorator.js';
export { ConsoleModule } from './modules/console/console.module.js';
export { grantTable, type ListedGrant, requestRow, requestText } from './modules/console/grant-entry.page.js';
export { setupOf, stateOf, stepOf } from './modules/console/states.js';
export { OwnNamespacesService } from './modules/console/own-namespaces.service.js';
export { PageParts, type SlotPlace, type SlotRequest } from './modules/console/page-parts.types.js';
export type { CallEvent, ChangeEvent, EventName } from './extensions/events/event.types.js';
export { ObjectSchemaDto, SetConnectionDto } from './modules/connections/core/connection.dto.js';
export { AsGiven } from './modules/connections/core/connection.validators.js';
export {
  callableConnections,
  ConnectionController,
  listedTools,
  ownConnections,
  ownConnectionsOnly,
} from './modules/connections/core/connections.access.js';
export { ConnectionCoreModule } from './modules/connections/core/connection-core.module.js';
export { ConnectionEvents } from './modules/connections/core/connection.events.js';
export { ConnectionHandles } from './modules/connections/core/connection-handles.js';
export type { ChangedConnection } from './modules/connections/core/connection.repository.js';
export { ResourceNotFoundError } from './modules/connections/core/connections.errors.js';
export type { Trial as ToolTrial } from './modules/connections/mcp-trial.service.js';
export { annotationsOf, type ListedTool, needsTick, shortened } from './modules/console/listed-tool.js';
export { MockModels, MockRecordings } from './modules/connections/mock/mock-models.service.js';
export { MockModule } from './modules/connections/mock/mock.module.js';
export { MockModelError, type MockModelProvider } from './modules/connections/mock/simulator/model-simulator.js';
export type { ModelledCall } from './modules/connections/mock/simulator/model-simulator.js';
export { errorResult, structuredResult, textResult } from './modules/connections/mock/simulator/simulator.js';
export type { RecordedCall, ToolResult } from './modules/connections/mock/simulator/simulator.js';
export { CallEvents } from './modules/logs/call.events.js';
export type { ConnectionCall, Invocation } from './modules/logs/invocation.types.js';
export { LogsModule } from './modules/logs/logs.module.js';
export { Accounts } from './modules/extension-api/accounts.facade.js';
export { Connections } from './modules/extension-api/connections.facade.js';
export { asSystem, type FacadeCaller } from './modules/extension-api/facade.types.js';
export { Grants } from './modules/extension-api/grants.facade.js';
export { Http, type HttpOptions } from './modules/extension-api/http.facade.js';
export { Identities } from './modules/extension-api/identities.facade.js';
export type { SignInWay } from './modules/people/sign-in-way.types.js';
export { Logs } from './modules/extension-api/logs.facade.js';
export { Namespaces } from './modules/extension-api/namespaces.facade.js';
export { Releases } from './modules/extension-api/releases.facade.js';
export type { NewFiles, NewRelease, ReleaseLogPart } from './modules/extension-api/releases.facade.js';
export { Secrets } from './modules/extension-api/secrets.facade.js';
export { Servers } from './modules/extension-api/servers.facade.js';
export { Tools, type ToolTarget } from './modules/extension-api/tools.facade.js';
export { invocationId, timeProblem } from './modules/logs/ingest/ingest-limits.js';
export type { IngestedInvocation, InvocationOutcome, LogException, LogLine } from './modules/logs/invocation.types.js';
export { NamespaceNotFoundError } from './modules/namespaces/namespaces.errors.js';
export { newKeyForm, newKeyOf, shownKey } from './modules/people/new-key.page.js';
export { ServerCardField } from './modules/servers/server-card.decorator.js';
export type { ServerCardContributor, ServerCardFieldOptions } from './modules/servers/server-card.decorator.js';
export { ApiServerName, ownServerOrNone, TargetServer } from './modules/servers/server.decorator.js';
export { formatQualifiedName, parseQualifiedName } from './modules/servers/server.types.js';
export type { ServerOffers, ServerRef } from './modules/servers/server.types.js';
export { AccessRequiredError, NotServerOwnerError, ServerNotFoundError } from './modules/servers/servers.errors.js';
export { ServersModule } from './modules/servers/servers.module.js';
export {
  namespaceNamed,
  qualifiedNameOf,
  type Target,
  targetKinds,
  type TargetName,
} from './modules/targets/target.types.js';
export { transactionOf, type Actor } from './platform/database/actor.js';
export { DEPTH_MAX, toStorableText } from './platform/database/storable.js';
export { WriteBehind } from './platform/database/write-behind.js';
export { isForeignKeyViolation, isUniqueViolation } from './platform/database/postgres-errors.js';
export type { Egress } from './platform/egress/egress.js';
export { egressTo } from './platform/egress/egress.module.js';
export { discard, readWithin } from './platform/egress/follow.js';
export { ConflictError, DomainError, errorOf, type ErrorKind, ForbiddenError } from './platform/errors/domain-error.js';
export { InvalidInputError, NotFoundError, statusOf, UnsupportedMediaError } from './platform/errors/domain-error.js';
export { ErrorFilter } from './platform/errors/error.filter.js';
export { type DecoratedMethod, DecoratedMethods } from './platform/external-modules/decorated-methods.js';
export { defineModule, type ExternalModule } from './platform/external-modules/load-external-modules.js';
export { loadExternalModules } from './platform/external-modules/load-external-modules.js';
export { ApiErrors } from './platform/http/api-docs.decorators.js';
export { decodeCursor, encodeCursor } from './platform/http/cursor.js';
export { readBytes } from './platform/http/body/request-body.js';
export { checkedBody, ClosedBody, UuidOr404 } from './platform/http/input.pipe.js';
export { IsFlag, IsPrintable, IsText, IsWhole, Omittable } from './platform/http/input-values.js';
export { PageQueryDto, pageOf, PaginationDto } from './platform/http/pagination.dto.js';
export { Public } from './platform/http/public.decorator.js';
export { SuccessDto } from './platform/http/success.dto.js';
export { IsTime } from './platform/http/time-text.js';
export {
  actions,
  badge,
  button,
  buttonLink,
  card,
  type Column,
  columns,
  details,
} from './platform/pages/components.js';
export { empty, facts, type Head, icon, list, notice, pager, popup, search } from './platform/pages/components.js';
export { snippet, type State, steps, table, tabs, tile, timeline, who } from './platform/pages/components.js';
export { type Field, fieldAs, formOf, type FormsView, type RejectedForm } from './platform/pages/forms.js';
export { respondToForm, withReason } from './platform/pages/forms.js';
export { readOwnCookie, type OwnCookie } from './platform/pages/browser-cookie.js';
export type { ClientContext } from './platform/pages/client-context.js';
export { PageError, rootFrom } from './platform/pages/page.js';
export { FramedPage, type Framed, GROWING, noticeOf, Redirect, RedirectAway } from './platform/pages/frame.js';
export { html, type Html, type HtmlValue } from './platform/pages/html.js';
export { isPlainText, jsonText } from './platform/pages/json-text.js';
export type { ShownOnce } from './platform/pages/shown-once.js';
export { timeOf } from './platform/pages/times.js';
export { partOf } from './platform/parts.js';
export { resolveRef } from './platform/json-schema/references.js';
export { schemaFaults } from './platform/json-schema/schema-faults.js';
export { groupBy } from './platform/group-by.js';
export { KeyedLimiter, NoSlotError } from './platform/limits/keyed-limiter.js';
export { withTimeout } from './platform/limits/with-timeout.js';
export { QueueMetrics } from './platform/queue/queue-metrics.js';
export { jobOptions, JobWorker, registerQueue } from './platform/queue/register-queue.js';
export { HOUR_MS, Schedule as IntervalSchedule, scheduledDeletion } from './platform/schedule/schedule.js';
export { LogNamesRepository, type LogNames } from './platform/telemetry/log-names.repository.js';
export { Metrics } from './platform/telemetry/metrics.js';
export { resourceOf } from './platform/telemetry/otel-resource.js';
export { canonicalJson, isObject, isWithinDepth, type JsonObject } from './platform/text/json.js';
export { jsonIn, parseBounded } from './platform/text/json-bounds.js';
export { Vault } from './platform/vault/vault.js';
export { visible } from './platform/text/quoted.js';
