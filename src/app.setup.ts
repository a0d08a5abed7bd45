/**
 * Assembles the HTTP application that `main.ts`, the tests and the OpenAPI generator share.
 *
 * Limits that hold for the process (size of responses, depth of JSON) are set here, before the first request. The first
 * words of all routes are reserved, so that the short form `/{namespace}` reaches every namespace.
 *
 * A route without an access rule, and a module that cannot be loaded, fail the start.
 */
import type { Server } from 'node:net';
import { Logger, type LoggerService, type Type } from '@nestjs/common';
import { ModulesContainer, NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { serveDocs } from './app.docs.js';
import { AppModule } from './app.module.js';
import type { Env } from './config/env.js';
import { Tuning } from './config/tuning.js';
import { loadLazyParts } from './config/role-module.js';
import { AuthorizationServerService } from './modules/authorization-server/authorization-server.service.js';
import { paths } from './modules/authorization-server/authorization-server.types.js';
import { offReason } from './modules/authorization-server/protected-resource.js';
import { checkRoutes } from './modules/auth/access.service.js';
import { Admission } from './modules/auth/admission.service.js';
import { leadToPage } from './modules/auth/mcp-endpoint.access.js';
import { RequestLimits } from './modules/auth/request-limits.service.js';
import { FastPathRouter, globalEnhancers } from './modules/auth/fast-path-router.js';
import { failPendingCalls } from './mcp/client/call-registry.js';
import { useMessageLimits } from './mcp/client/message-budget.js';
import { SessionsService } from './modules/people/sessions.service.js';
import { UplinkGateway } from './modules/connections/uplink/uplink.gateway.js';
import { loadModules } from './own-modules.js';
import type { ExternalModule } from './platform/external-modules/load-external-modules.js';
import { SlipwayAdapter, type ServerParts } from './platform/http/adapter.js';
import { BodyBudget } from './platform/http/body/body-budget.js';
import { reservePath } from './platform/http/resource-names.js';
import { routeTable, type Route } from './platform/http/route-table.js';
import { clientContextOf } from './platform/pages/client-context.js';
import { moduleLinks, signedInAt } from './platform/pages/frame.js';
import { Draining } from './platform/telemetry/draining.js';
import { HttpMeter } from './platform/telemetry/http-meter.js';

/**
 * @param options `preview`: modules and routes only, nothing is started; `modules`: loaded besides those of
 * `SLIPWAY_MODULES`
 */
export async function createApp(
  env: Env,
  options: { preview?: boolean; logger?: LoggerService; internal?: Server; modules?: ExternalModule[] } = {},
  tuning = new Tuning(),
): Promise<NestExpressApplication> {
  useMessageLimits({
    messages: tuning.upstreamMessagesMax,
    chars: tuning.upstreamMessagesBytes,
    answer: env.upstreamAnswerMb * 1024 * 1024,
  });
  const parts: ServerParts = { internal: options.internal };
  const adapter = new SlipwayAdapter(env, tuning, parts);
  const external = [...(await loadModules(env)), ...(options.modules ?? [])];
  const links = external.flatMap(({ name, link }) => (link ? [[`ui/m/${name}`, link] as const] : []));
  moduleLinks.set(env, links);
  await loadLazyParts(env.roles);
  const app = await NestFactory.create<NestExpressApplication>(AppModule.forRoot(env, tuning, external), adapter, {
    bodyParser: false,
    abortOnError: false,
    logger: options.preview ? false : options.logger,
    preview: options.preview,
  });
  const routes = routeTable(app.get(ModulesContainer));
  checkRoutes(routes);
  routes.forEach(({ path }) => reservePath(path));
  Object.values(paths).forEach(reservePath);
  app.disable('x-powered-by');
  app.set('etag', false);
  if (options.preview) return app;
  const draining = app.get(Draining, { strict: false });
  const meter = app.get(HttpMeter, { strict: false });
  const logger = new Logger('request');
  const isLogged = env.accessLog || env.logLevel === 'debug' || env.logLevel === 'trace';
  Object.assign(parts, {
    isDraining: () => draining.isDraining,
    log: isLogged ? (fields) => (env.accessLog ? logger.log(fields) : logger.debug(fields)) : undefined,
    meter: env.metricsToken === null ? undefined : (request, response) => meter.begin(request, response),
    ...(env.roles.includes('api') && (await apiParts(app, env, routes))),
  } satisfies ServerParts);
  return app;
}

async function apiParts(app: NestExpressApplication, env: Env, routes: Route[]): Promise<ServerParts> {
  const get = <T>(type: Type<T>) => app.get(type, { strict: false });
  const limits = get(RequestLimits);
  const fastPath = new FastPathRouter(routes, get(Admission), get(BodyBudget), limits, globalEnhancers(app));
  const reason = offReason(env);
  const login = reason === null ? get(AuthorizationServerService) : null;
  await login?.start();
  if (reason !== null && env.oauth !== 'off') new Logger('login').log(`MCP clients cannot log in by URL: ${reason}`);
  const uplinks = get(UplinkGateway);
  const sessionsService = get(SessionsService);
  signedInAt.set(env, (request) => sessionsService.current(clientContextOf(request, env)));
  serveDocs(app, env, limits, sessionsService);
  return {
    take: (request, response) =>
      (request.method !== 'POST' && leadToPage(request, response)) ||
      fastPath.tryServe(request, response) ||
      login?.tryServe(request, response) === true,
    upgrade: (request, socket, head) => void uplinks.handleUpgrade(request, socket, head),
    failPendingCalls,
  };
}
