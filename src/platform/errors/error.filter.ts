import type { IncomingMessage } from 'node:http';
import { Catch, HttpException, Logger, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { Request, Response } from 'express';
import { DomainError, InvalidInputError, statusOf } from './domain-error.js';
import { errorAnswer, familyOf } from './error-body.js';
import { BodyTooLargeError, RouteNotFoundError } from './http-errors.js';

/** What Express' parsers and Nest's router throw, in our words; everything else is returned as it came. */
function asDomainError(error: unknown, request: Request): unknown {
  if (error instanceof DomainError) return error;
  const status = error instanceof HttpException ? error.getStatus() : (error as { status?: number }).status;
  const path = request.originalUrl.split('?')[0] ?? '';
  if (status === 404) return new RouteNotFoundError(request.method, path);
  if (status === 413) return new BodyTooLargeError((error as { limit?: number }).limit ?? 0);
  if (status === 400 || status === 415) {
    const { type, message } = error as { type?: string; message: string };
    return new InvalidInputError(type === 'entity.parse.failed' ? `The body is not valid JSON: ${message}` : message);
  }
  return error;
}

/**
 * Logs what an operator must see: 5xx as errors with their cause, everything else at debug. Nothing else in the
 * service logs errors of requests.
 */
export function logFailure(logger: Logger, error: unknown, request: IncomingMessage): void {
  const what = `${request.method} ${request.url?.split('?')[0]}`;
  const requestId = request.headers['x-request-id'];
  const status = error instanceof DomainError ? statusOf[error.kind] : 500;
  const detail = error instanceof DomainError ? error.detail : error;
  if (status === 500) logger.error({ msg: `${what} failed`, requestId, err: error });
  else logger.debug({ msg: `${what} answered ${status}`, requestId, reason: (error as Error).message, detail });
}

/** The one exit for errors: domain error in, status and one of the two bodies out. */
@Catch()
export class ErrorFilter implements ExceptionFilter {
  private readonly logger = new Logger('http');

  catch(thrown: unknown, host: ArgumentsHost): void {
    const request = host.switchToHttp().getRequest<Request>();
    const response = host.switchToHttp().getResponse<Response>();
    const error = asDomainError(thrown, request);
    logFailure(this.logger, error, request);
    if (response.headersSent) {
      response.destroy();
      return;
    }
    const { status, headers, body } = errorAnswer(error, familyOf(request.path));
    response.status(status).set(headers).json(body);
  }
}
