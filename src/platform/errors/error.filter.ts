import type { IncomingMessage } from 'node:http';
import { types } from 'node:util';
import { Catch, HttpException, Logger, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import type { Request, Response } from 'express';
import { DatabaseUnreachableError } from '../database/postgres-errors.js';
import type { HoldingGrant } from '../http/held-by-keys.js';
import { methodsOf, routeTable, type Route } from '../http/route-table.js';
import { DomainError, InvalidInputError, MethodNotAllowedError, routeNotFound, statusOf } from './domain-error.js';
import { domainErrorOf, errorAnswer } from './error-body.js';
import { familyOf } from './error-form.decorator.js';

/** Errors of Express' and Nest's routers as domain errors. Other errors are returned unchanged. */
function asDomainError(error: unknown, request: Request, routes: Route[]): unknown {
  if (error instanceof DomainError) return error;
  const status = error instanceof HttpException ? error.getStatus() : (error as { status?: number }).status;
  if (status === 404) {
    const path = request.originalUrl.split('?')[0] ?? '';
    const methods = methodsOf(routes, path);
    // OPTIONS has no routes of its own: the filter answers it from this error.
    const isServed = request.method !== 'OPTIONS' && methods.includes(request.method);
    return methods.length > 0 && !isServed
      ? new MethodNotAllowedError(request.method, methods)
      : routeNotFound(request.method, path);
  }
  if (status === 400) return new InvalidInputError((error as Error).message);
  return error;
}

/**
 * Logs unexpected errors with their cause at error, and domain errors in one line at debug. An unreachable database is also a
 * warning that names no route, so that the logger writes the warnings of an outage once a minute, with their number. Nothing
 * else in the service logs errors of requests.
 */
export function logFailure(logger: Logger, error: unknown, request: IncomingMessage): void {
  const what = `${request.method} ${request.url?.split('?')[0]}`;
  const requestId = request.headers['x-request-id'];
  const known = domainErrorOf(error);
  if (!known) {
    logger.error({ msg: `${what} failed`, requestId, err: error });
    return;
  }
  // Not logged in full: a message about an input may quote a secret in it.
  const { detail } = known;
  const reason = known.kind === 'invalid' || known.kind === 'unprocessable' ? known.code : known.message;
  if (known instanceof DatabaseUnreachableError) {
    logger.warn({
      msg: 'requests are answered 503, since the database does not answer',
      requestId,
      detail: brief(detail),
    });
  }
  logger.debug({ msg: `${what} answered ${statusOf[known.kind]}`, requestId, reason, detail: brief(detail) });
}

/** An error in a word and a sentence: its other fields may hold what an upstream or the database said, secrets too. */
function brief(detail: unknown): unknown {
  if (!types.isNativeError(detail)) return detail;
  const { code, message } = detail as NodeJS.ErrnoException;
  return [code, message].filter(Boolean).join(': ');
}

/** A request, with its caller behind the access guard. */
type GrantedRequest = Request & { grant?: { caller: { grant?: HoldingGrant } } };

/** The one exit for errors: domain error in, status and one of the two bodies out. */
@Catch()
export class ErrorFilter implements ExceptionFilter {
  private readonly logger = new Logger('http');

  private routes?: Route[];

  constructor(private readonly modules: ModulesContainer) {}

  catch(thrown: unknown, host: ArgumentsHost): void {
    const request = host.switchToHttp().getRequest<GrantedRequest>();
    const response = host.switchToHttp().getResponse<Response>();
    const error = asDomainError(thrown, request, (this.routes ??= routeTable(this.modules)));
    if (error instanceof MethodNotAllowedError && request.method === 'OPTIONS') {
      response.status(204).set(error.headers).end();
      return;
    }
    logFailure(this.logger, error, request);
    if (response.headersSent) {
      response.destroy();
      return;
    }
    const family = familyOf(request.path, request.method);
    const { status, headers, body } = errorAnswer(error, family, request.grant?.caller.grant);
    // A route may have said already of what type its success is.
    response.status(status).type('json').set(headers).json(body);
  }
}
