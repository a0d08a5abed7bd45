import type { IncomingMessage, ServerResponse } from 'node:http';
import { Logger } from '@nestjs/common';
import { errorAnswer, familyOf } from '../../platform/errors/error-body.js';
import { logFailure } from '../../platform/errors/error.filter.js';
import type { Route } from '../../platform/http/route-table.js';
import { declarationOf } from './access.service.js';
import type { AccessService } from './access.service.js';
import type { AccessRule } from './access.types.js';
import { DIRECT, type DirectRequest } from './fast-path.decorator.js';

type DirectHandler = (request: DirectRequest, response: ServerResponse) => Promise<void>;

interface DirectRoute {
  method: string;
  segments: string[];
  rule: AccessRule;
  handle: DirectHandler;
}

/** The door for `@Direct()` routes: matches, authenticates, authorizes, calls. */
export class FastPathRouter {
  private readonly routes: DirectRoute[];
  private readonly logger = new Logger('http');

  constructor(
    routes: Route[],
    private readonly access: AccessService,
  ) {
    this.routes = routes
      .filter(({ handler }) => Reflect.getMetadata(DIRECT, handler) === true)
      .map((route) => ({
        method: route.method,
        segments: route.path.split('/'),
        rule: declarationOf(route) as AccessRule,
        handle: route.handler.bind(route.instance) as unknown as DirectHandler,
      }));
  }

  /** True when the request was one of ours; its answer is under way. `request.url` is canonical. */
  take(request: IncomingMessage, response: ServerResponse): boolean {
    const url = request.url ?? '';
    const mark = url.indexOf('?');
    const path = mark < 0 ? url : url.slice(0, mark);
    const given = path.split('/');
    for (const route of this.routes) {
      const params = route.method === request.method ? match(route.segments, given) : null;
      if (!params) continue;
      void this.serve(route, Object.assign(request, { params }) as DirectRequest, response, path);
      return true;
    }
    return false;
  }

  private async serve(route: DirectRoute, request: DirectRequest, response: ServerResponse, path: string) {
    try {
      const caller = await this.access.authenticate(request.headers.authorization);
      const { rule } = route;
      const owner = rule.owner === undefined ? undefined : String(request.params[rule.owner]);
      request.grant = await this.access.authorize(caller, rule, { owner });
      await route.handle(request, response);
    } catch (error) {
      logFailure(this.logger, error, request);
      answerError(response, error, path);
    }
  }
}

/** Calls are served directly, and a call may have acted: published clients would repeat it unless told not to. */
const neverRepeat = { 'x-should-retry': 'false' };

function answerError(response: ServerResponse, error: unknown, path: string): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const { status, headers, body } = errorAnswer(error, familyOf(path));
  const text = JSON.stringify(body);
  // The rest of an unread body must not be taken for the next request.
  const close = response.req.complete ? {} : { connection: 'close' };
  response
    .writeHead(status, { ...neverRepeat, ...headers, ...close, 'content-type': 'application/json; charset=utf-8' })
    .end(text);
}

/** The parameters of a matching path, decoded once; null when it does not match or cannot be decoded. */
function match(pattern: string[], given: string[]): Record<string, string | string[]> | null {
  const last = pattern[pattern.length - 1] ?? '';
  const isOpen = last.startsWith('*');
  if (isOpen ? given.length < pattern.length : given.length !== pattern.length) return null;
  const params: Record<string, string | string[]> = {};
  try {
    for (let i = 1; i < pattern.length; i += 1) {
      const part = pattern[i];
      if (part.startsWith(':')) {
        if (given[i] === '') return null;
        params[part.slice(1)] = decodeURIComponent(given[i]);
      } else if (part.startsWith('*')) {
        const rest = given.slice(i).map(decodeURIComponent);
        if (rest.every((segment) => segment === '')) return null;
        params[part.slice(1)] = rest;
      } else if (part !== given[i]) return null;
    }
  } catch {
    return null;
  }
  return params;
}
