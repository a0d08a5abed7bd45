import type { IncomingMessage, ServerResponse } from 'node:http';
import { Logger, type INestApplicationContext } from '@nestjs/common';
import {
  EXCEPTION_FILTERS_METADATA,
  GUARDS_METADATA,
  INTERCEPTORS_METADATA,
  PIPES_METADATA,
  ROUTE_ARGS_METADATA,
} from '@nestjs/common/constants.js';
import { ApplicationConfig } from '@nestjs/core';
import { StartError } from '../../config/env.js';
import { errorAnswer } from '../../platform/errors/error-body.js';
import { familyOf } from '../../platform/errors/error-form.decorator.js';
import { ErrorFilter } from '../../platform/errors/error.filter.js';
import { logFailure } from '../../platform/errors/log-failure.js';
import type { BodyBudget } from '../../platform/http/body/body-budget.js';
import { InputPipe } from '../../platform/http/input.pipe.js';
import { JSON_TYPE } from '../../platform/http/json-answer.js';
import { knownQuery, requireNoQuery, KnownQueryGuard } from '../../platform/http/known-query.guard.js';
import { matchPath, type Route } from '../../platform/http/route-table.js';
import { AccessGuard } from './access.guard.js';
import { declarationOf } from './access.service.js';
import type { AccessRule, Grant } from './access.types.js';
import type { Admission } from './admission.service.js';
import type { RequestLimits } from './request-limits.service.js';
import { FAST_PATH, type FastPathRequest } from './access.decorator.js';

type FastPathHandler = (request: FastPathRequest, response: ServerResponse) => Promise<void>;

interface FastPathRoute {
  method: string;
  segments: string[];
  rule: AccessRule;
  /** True for a documented route that is not an MCP endpoint: it has no query parameters. */
  isWithoutQuery: boolean;
  handle: FastPathHandler;
}

interface Match {
  route: FastPathRoute;
  params: FastPathRequest['params'];
}

/** Maximum number of cached paths: clients without a key add paths, each of at most the size of a request head. */
const MATCHES_MAX = 1_000;

/**
 * The router does their work: it admits requests as the guard does, its handlers validate their input, and it sends errors as the filter
 * does.
 */
const REPLACED: unknown[] = [AccessGuard, KnownQueryGuard, InputPipe, ErrorFilter];

const ENHANCERS = [GUARDS_METADATA, PIPES_METADATA, INTERCEPTORS_METADATA, EXCEPTION_FILTERS_METADATA];

const UNSUPPORTED_RULES = ['account', 'page', 'signed'] as const;

/** Arguments of a handler as Nest stores them: `type:index`, for `@Req()` first and `@Res()` second. */
const HANDLER_ARGUMENTS = ['0:0', '1:1'];

export function globalEnhancers(app: INestApplicationContext): object[] {
  const config = app.get(ApplicationConfig, { strict: false });
  const perRequest = [
    ...config.getGlobalRequestGuards(),
    ...config.getGlobalRequestPipes(),
    ...config.getGlobalRequestInterceptors(),
    ...config.getGlobalRequestFilters(),
  ];
  return [
    ...config.getGlobalGuards(),
    ...config.getGlobalPipes(),
    ...config.getGlobalInterceptors(),
    ...config.getGlobalFilters(),
    ...perRequest.map(({ metatype, instance }) => metatype ?? (instance as object)),
  ];
}

export class FastPathRouter {
  private readonly routes: FastPathRoute[];
  private readonly matches = new Map<string, Match>();
  private readonly logger = new Logger('http');

  /**
   * @param globals see {@link globalEnhancers}
   * @throws StartError for every route that declares something the fast path does not run
   */
  constructor(
    routes: Route[],
    private readonly admission: Admission,
    private readonly bodies: BodyBudget,
    private readonly limits: RequestLimits,
    globals: object[] = [],
  ) {
    const fastRoutes = routes.filter(({ handler }) => Reflect.getMetadata(FAST_PATH, handler) === true);
    const faults = fastRoutes.flatMap((route) => faultsOf(route, globals));
    if (faults.length > 0) throw new StartError(faults.join('\n'));
    this.routes = fastRoutes.map((route) => ({
      method: route.method,
      segments: route.path.split('/'),
      rule: declarationOf(route) as AccessRule,
      isWithoutQuery: familyOf(route.path) !== 'json-rpc' && knownQuery(route.controller, route.handler) !== 'any',
      handle: route.handler.bind(route.instance) as unknown as FastPathHandler,
    }));
  }

  /**
   * @param request with its canonical URL
   * @returns false when no route matches; the rest runs in the background
   */
  tryServe(request: IncomingMessage, response: ServerResponse): boolean {
    const url = request.url ?? '';
    const mark = url.indexOf('?');
    const path = mark < 0 ? url : url.slice(0, mark);
    const match = this.match(request.method ?? '', path);
    if (!match) return false;
    const { route, params } = match;
    const query = route.isWithoutQuery && mark >= 0 ? url.slice(mark + 1) : '';
    const routed = request as FastPathRequest;
    routed.params = params;
    void this.serve(route, routed, response, path, query);
    return true;
  }

  private match(method: string, path: string): Match | null {
    const key = `${method} ${path}`;
    const remembered = this.matches.get(key);
    if (remembered) return remembered;
    const segments = path.split('/');
    for (const route of this.routes) {
      const params = route.method === method ? matchPath(route.segments, segments) : null;
      if (!params) continue;
      const match = { route, params };
      if (this.matches.size >= MATCHES_MAX) this.matches.clear();
      this.matches.set(key, match);
      return match;
    }
    return null;
  }

  private async serve(
    route: FastPathRoute,
    request: FastPathRequest,
    response: ServerResponse,
    path: string,
    query: string,
  ): Promise<void> {
    let granted: Grant | undefined;
    try {
      const admitted = this.admission.admit(request, response, route.rule);
      granted = admitted instanceof Promise ? await admitted : admitted;
      const { caller } = granted;
      request.grant = granted;
      request.countMore = (requests) => this.limits.admit(request, caller, null, requests);
      requireNoQuery(query);
      if (route.method !== 'GET') {
        this.bodies.admit(request, response, caller.accountId);
        this.limits.beginCall(caller, response);
      }
      await route.handle(request, response);
    } catch (error) {
      logFailure(this.logger, error, request);
      if (response.headersSent) return void response.destroy();
      const { status, headers, body } = errorAnswer(error, familyOf(path), granted?.caller);
      // A failed call may have had effects; published clients retry without this header.
      const all = {
        ...(request.method === 'POST' && { 'x-should-retry': 'false' }),
        ...headers,
        'content-type': JSON_TYPE,
      };
      response.writeHead(status, all).end(JSON.stringify(body));
    } finally {
      this.admission.removeRequest(request);
    }
  }
}

function faultsOf(route: Route, globals: object[]): string[] {
  const { method, path, controller, handler, name } = route;
  const declared = declarationOf(route);
  const rule = declared === 'public' ? undefined : declared;
  // Callers without a key have no account, which bodies and calls count towards.
  const unsupported = method === 'GET' ? UNSUPPORTED_RULES : ([...UNSUPPORTED_RULES, 'anonymous'] as const);
  const rules = unsupported.filter((member) => rule?.[member] !== undefined).map((member) => `the rule "${member}"`);
  const enhancers = [handler, controller].flatMap((target) =>
    ENHANCERS.flatMap((key) => (Reflect.getMetadata(key, target) as object[] | undefined) ?? []),
  );
  const foreign = [...enhancers, ...globals.filter((enhancer) => !REPLACED.includes(classOf(enhancer)))];
  const parameters = Object.keys(
    (Reflect.getMetadata(ROUTE_ARGS_METADATA, controller, name) as object | undefined) ?? {},
  );
  return [
    ...(declared === 'public' ? ['@Public()'] : rules),
    ...foreign.map((enhancer) => classOf(enhancer).name),
    ...(parameters.some((argument) => !HANDLER_ARGUMENTS.includes(argument))
      ? ['parameters besides @Req() and @Res()']
      : []),
  ].map((skippedPart) => `${method} ${path} has @FastPath(), which does not run ${skippedPart}`);
}

function classOf(enhancer: object): { name: string } {
  return typeof enhancer === 'function' ? enhancer : enhancer.constructor;
}
