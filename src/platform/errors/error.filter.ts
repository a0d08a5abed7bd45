import { Catch, HttpException, Inject, Logger, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import type { Request, Response } from 'express';
import { Env } from '../../config/env.js';
import { RESERVED_NAMESPACES } from '../http/resource-names.js';
import { askedUrl } from '../http/adapter.js';
import { methodsOf, routeTable, type Route } from '../http/route-table.js';
import { nearestName } from '../text/nearest.js';
import {
  DomainError,
  InvalidInputError,
  MethodNotAllowedError,
  NotFoundError,
  routeNotFound,
  type ErrorReader,
} from './domain-error.js';
import { errorAnswer, HINT_HEADER } from './error-body.js';
import { familyOf } from './error-form.decorator.js';
import { NothingHere, renderFramed, signedInAt } from '../pages/frame.js';
import { redirectTo, rootFrom, sendPage, wantsPage } from '../pages/page.js';
import { logFailure } from './log-failure.js';

/** Converts errors of Express' and Nest's routers, and returns others unchanged. */
function asDomainError(error: unknown, request: Request, routes: Route[]): unknown {
  if (error instanceof DomainError) return error;
  const status = error instanceof HttpException ? error.getStatus() : (error as { status?: number }).status;
  if (status === 404) {
    const path = request.originalUrl.split('?')[0] ?? '';
    const methods = methodsOf(routes, path);
    // OPTIONS has no routes of its own: the filter responds to it from this error.
    const isServed = request.method !== 'OPTIONS' && methods.includes(request.method);
    return methods.length > 0 && !isServed
      ? new MethodNotAllowedError(request.method, methods)
      : routeNotFound(request.method, path);
  }
  if (status === 400) return new InvalidInputError((error as Error).message);
  return error;
}

type GrantedRequest = Request & { grant?: { caller: ErrorReader } };

/**
 * Returns true for a user who opens an address in a browser. Documents under `/.well-known/` are for programs (RFC
 * 8615).
 */
function isBrowser(request: Request): boolean {
  const { accept = '', authorization } = request.headers;
  const isProgram = authorization !== undefined || accept.includes('text/event-stream');
  return wantsPage(request) && !isProgram && !request.path.startsWith('/.well-known/');
}

function pageAbove(path: string, routes: Route[]): string {
  const parent = path.slice(0, path.lastIndexOf('/'));
  return parent === '' || methodsOf(routes, parent).includes('GET') ? parent.slice(1) : pageAbove(parent, routes);
}

/** Returns the nearest path. A path of one word is also the short form of a namespace, so only those with routes are suggested. */
function nearestPath(asked: string, routes: Route[]): string {
  const word = /^\/([^/?]+)\/?(?:\?|$)/.exec(asked)?.[1] ?? '';
  const words = routes.flatMap(({ path }) => /^\/([a-z][\w-]*)$/.exec(path)?.[1] ?? []);
  const nearest = nearestName(word, words, word.length < 6 ? 1 : 2);
  return nearest === null ? '' : ` Did you mean /${nearest}?`;
}

/** Converts all errors to a status and a body; for an unknown path in a browser, to a page. */
@Catch()
export class ErrorFilter implements ExceptionFilter {
  private readonly logger = new Logger('http');

  private routes?: Route[];

  constructor(
    private readonly modulesContainer: ModulesContainer,
    @Inject(Env) private readonly env: Env,
  ) {}

  catch(thrown: unknown, host: ArgumentsHost): void {
    const request = host.switchToHttp().getRequest<GrantedRequest>();
    const response = host.switchToHttp().getResponse<Response>();
    const routes = (this.routes ??= routeTable(this.modulesContainer));
    const error = asDomainError(thrown, request, routes);
    if (error instanceof MethodNotAllowedError && request.method === 'OPTIONS') {
      response.status(204).set(error.headers).end();
      return;
    }
    if (error instanceof MethodNotAllowedError && isBrowser(request) && /^\/(?:ui|me)\//.test(request.path)) {
      return redirectTo(response, rootFrom(request.path) + pageAbove(request.path, routes));
    }
    logFailure(this.logger, error, request);
    if (response.headersSent) {
      response.destroy();
      return;
    }
    const family = familyOf(request.path, request.method);
    const { status, headers, body } = errorAnswer(error, family, request.grant?.caller);
    const isUnknown = error instanceof NotFoundError && !(thrown instanceof DomainError);
    if ((isUnknown || status === 401) && isBrowser(request)) {
      response.set(headers);
      return void this.sendPage(request, response, status);
    }
    const { pathPrefix } = this.env;
    if (status === 404 && pathPrefix !== '' && askedUrl(request).startsWith(`${pathPrefix}/`)) {
      headers[HINT_HEADER] ??= `PUBLIC_URL has the path ${pathPrefix}: the proxy must take it off.`;
    }
    if (status === 404 && !headers[HINT_HEADER]?.includes('Did you mean')) {
      const hint = `${headers[HINT_HEADER] ?? ''}${nearestPath(askedUrl(request), routes)}`.trimStart();
      if (hint !== '') headers[HINT_HEADER] = hint;
    }
    // A route might already have set the type of its success.
    response.status(status).type('json').set(headers).json(body);
  }

  /**
   * Sends the page for an unknown address, or redirects a signed-in user from the name of a server or namespace to its
   * page.
   */
  private async sendPage(request: Request, response: Response, status: number): Promise<void> {
    const find = signedInAt.get(this.env);
    const signedIn = await find?.(request).catch(() => null);
    const [, namespace = '', server] = /^\/([\w-]+)(?:\/([\w-]+))?\/?$/.exec(askedUrl(request).split('?')[0]) ?? [];
    if (signedIn && namespace !== '' && !RESERVED_NAMESPACES.has(namespace)) {
      const page = server === undefined ? `ui/n/${namespace}` : `ui/s/${namespace}--${server}`;
      return redirectTo(response, rootFrom(askedUrl(request)) + page);
    }
    sendPage(response, renderFramed(this.env, request, response, signedIn ?? null, new NothingHere(status)), status);
  }
}
