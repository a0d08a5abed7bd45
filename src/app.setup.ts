/**
 * Assembles the HTTP application that `main.ts`, the tests and the OpenAPI generator share: Nest on `SlipwayAdapter`,
 * the fast path, the authorization server, WebSocket handshakes, API documentation.
 *
 * Limits that hold for the process (size of answers, depth of JSON) are set here, before the first request. Parts of
 * modules that only some roles load, and modules outside the tree (`SLIPWAY_MODULES`), are imported before Nest sees
 * any module. The first words of all routes are reserved, so that no namespace has a name that its short form
 * `/{namespace}` could not reach.
 *
 * A route without an access rule, and a module that cannot be loaded, fail the start.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { Logger, type INestApplication, type LoggerService, type Type } from '@nestjs/common';
import { ModulesContainer, NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { SwaggerModule, type OpenAPIObject } from '@nestjs/swagger';
import type { Express, Request, Response } from 'express';
import { AppModule } from './app.module.js';
import type { Env } from './config/env.js';
import { loadLazyParts } from './config/role-module.js';
import { AuthorizationServerService } from './modules/authorization-server/authorization-server.service.js';
import { paths } from './modules/authorization-server/authorization-server.types.js';
import { offReason } from './modules/authorization-server/protected-resource.js';
import { AccessService, checkRoutes } from './modules/auth/access.service.js';
import { RequestLimits } from './modules/auth/request-limits.service.js';
import { FastPathRouter, globalEnhancers } from './modules/auth/fast-path-router.js';
import { failPendingCalls } from './mcp/client/call-registry.js';
import { useMessageLimits } from './mcp/client/message-budget.js';
import { startPage } from './modules/people/people-pages.js';
import { SessionsService } from './modules/people/sessions.service.js';
import { UplinkGateway } from './modules/connections/uplink/uplink.gateway.js';
import { loadExternalModules } from './platform/external-modules/load-external-modules.js';
import { SlipwayAdapter } from './platform/http/adapter.js';
import { BodyBudget } from './platform/http/body/body-budget.js';
import { reservePath } from './platform/http/resource-names.js';
import { createOpenApi } from './platform/http/openapi-document.js';
import { routeTable } from './platform/http/route-table.js';
import { isOwnHost } from './platform/pages/own-host.js';
import { sendPage } from './platform/pages/page.js';
import { useJsonBounds } from './platform/text/json-bounds.js';
import { Draining } from './platform/telemetry/draining.js';
import { HttpMeter } from './platform/telemetry/http-meter.js';

/** Creates the app. */
export async function createApp(
  env: Env,
  options: { preview?: boolean; logger?: LoggerService } = {},
): Promise<NestExpressApplication> {
  useJsonBounds({ depth: env.jsonDepthMax, members: env.jsonMembersMax, elements: env.jsonElementsMax });
  useMessageLimits({
    messages: env.upstreamMessagesMax,
    chars: env.upstreamMessagesMb * 1024 * 1024,
    answer: env.upstreamAnswerMb * 1024 * 1024,
  });
  const adapter = new SlipwayAdapter(env);
  const external = await loadExternalModules(env.modules ?? []);
  await loadLazyParts(env.roles);
  const app = await NestFactory.create<NestExpressApplication>(AppModule.forRoot(env, external), adapter, {
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
  adapter.isDraining = () => draining.isDraining;
  if (env.accessLog || env.logLevel === 'debug' || env.logLevel === 'trace') {
    const logger = new Logger('request');
    adapter.log = (fields) => (env.accessLog ? logger.log(fields) : logger.debug(fields));
  }
  if (env.metricsToken !== null) {
    const meter = app.get(HttpMeter, { strict: false });
    adapter.meter = (request, response) => meter.begin(request, response);
  }
  if (env.roles.includes('api')) {
    const part = <T>(type: Type<T>) => app.get(type, { strict: false });
    const fastPath = new FastPathRouter(
      routes,
      part(AccessService),
      part(BodyBudget),
      part(RequestLimits),
      globalEnhancers(app),
    );
    const reason = offReason(env);
    const server = part(AuthorizationServerService);
    if (reason === null) {
      await server.start();
      adapter.authorizationServer = (request, response) => server.take(request, response);
    } else if (env.oauth !== 'off') new Logger('login').log(`MCP clients cannot log in by URL: ${reason}`);
    adapter.fastPath = (request, response) => fastPath.take(request, response);
    const uplinks = part(UplinkGateway);
    adapter.failPendingCalls = failPendingCalls;
    adapter.upgrade = (request, socket, head) => void uplinks.take(request, socket, head);
    serveDocs(app, env, part(RequestLimits), part(SessionsService));
  }
  return app;
}

/** The page runs only its own scripts and shows in no frame. Swagger UI writes styles into its elements. */
const DOCS_HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
};

/** The documents that Swagger serializes for each request, and their content types. */
const DOCUMENTS = {
  '/openapi.json': 'application/json; charset=utf-8',
  '/openapi.yaml': 'text/yaml; charset=utf-8',
  '/docs/swagger-ui-init.js': 'application/javascript; charset=utf-8',
};

/** The pages of the documentation, in the same place of the repository and of the image. */
const GUIDES_FOLDER = join(dirname(createRequire(import.meta.url).resolve('slipway/package.json')), 'docs');

/**
 * Swagger UI at `/docs`, the pages of the documentation below it, the document at `/openapi.json`, and `/`, a page for browsers
 * and JSON for programs. Limited for each address.
 */
function serveDocs(
  app: INestApplication & NestExpressApplication,
  env: Env,
  limits: RequestLimits,
  sessions: SessionsService,
): void {
  let document: OpenAPIObject | undefined;
  app.use((request: Request, response: Response, next: () => void) => {
    const isPage = /^\/docs(?:\/|$)/.test(request.path);
    if (isPage || request.path === '/' || request.path in DOCUMENTS) limits.admitStranger(request, response);
    if (isPage) response.set(DOCS_HEADERS);
    next();
  });
  const express = app.getHttpAdapter().getInstance() as Express;
  for (const [path, type] of Object.entries(DOCUMENTS)) {
    let kept: Buffer | undefined;
    express.get(path, (_request, response, next) => {
      response.set('content-type', type);
      if (kept) return void response.send(kept);
      const send = response.send.bind(response);
      response.send = (text: string) => send((kept = Buffer.from(text)));
      next();
    });
  }
  const files = existsSync(GUIDES_FOLDER) ? readdirSync(GUIDES_FOLDER) : [];
  const guides = files.filter((file) => file.endsWith('.md')).sort();
  express.get('/docs/:guide', (request, response, next) => {
    const { guide } = request.params;
    if (!guides.includes(guide)) return next();
    // Browsers download markdown.
    response.type('text/plain').sendFile(join(GUIDES_FOLDER, guide));
  });
  SwaggerModule.setup('docs', app, () => (document ??= createOpenApi(app)), {
    jsonDocumentUrl: 'openapi.json',
    yamlDocumentUrl: 'openapi.yaml',
    customSiteTitle: 'Slipway API',
    swaggerOptions: {
      displayRequestDuration: true,
      tryItOutEnabled: true,
      operationsSorter: null,
      defaultModelsExpandDepth: 0,
    },
  });
  const titles = guides.map((guide) => {
    const [, title = guide] = /^# (.+)$/m.exec(readFileSync(join(GUIDES_FOLDER, guide), 'utf8')) ?? [];
    return { path: `docs/${guide}`, title };
  });
  app.use(async (request: Request, response: Response, next: () => void) => {
    if (request.path !== '/' || request.method !== 'GET') return next();
    response.vary('Accept');
    if (request.accepts(['json', 'html']) === 'html') {
      // The page also shows where the session cannot be read: under a foreign name, and while the database is away.
      const person = isOwnHost(request, env) ? await sessions.current(request).catch(() => null) : null;
      return sendPage(response, startPage(env, person, titles));
    }
    const paths = guides.map((guide) => `/docs/${guide}`);
    response.json({ name: 'Slipway', docs: '/docs', guides: paths, openapi: '/openapi.json', health: '/health' });
  });
}
