/** Log lines of failed requests. Nothing else in the service logs errors of requests. */
import type { IncomingMessage } from 'node:http';
import { types } from 'node:util';
import type { Logger } from '@nestjs/common';
import { DatabaseUnreachableError } from '../database/postgres-errors.js';
import { statusOf } from './domain-error.js';
import { domainErrorOf } from './error-body.js';

/**
 * Logs unexpected errors with their cause at error, and domain errors in one line at debug. An unreachable database is also a
 * warning that names no route, so that the logger writes the warnings of an outage once a minute, with their number.
 */
export function logFailure(logger: Logger, error: unknown, request: IncomingMessage): void {
  const route = `${request.method} ${request.url?.split('?')[0]}`;
  const requestId = request.headers['x-request-id'];
  const failure = domainErrorOf(error);
  if (!failure) {
    logger.error({ msg: `${route} failed`, requestId, err: error });
    return;
  }
  // Not logged in full: a message about an input may quote a secret in it.
  const { detail } = failure;
  const reason = failure.kind === 'invalid' || failure.kind === 'unprocessable' ? failure.code : failure.message;
  if (failure instanceof DatabaseUnreachableError) {
    logger.warn({
      msg: 'requests are rejected with 503, since the database does not respond',
      requestId,
      detail: brief(detail),
    });
  }
  logger.debug({ msg: `${route} answered ${statusOf[failure.kind]}`, requestId, reason, detail: brief(detail) });
}

/** An error in a word and a message: its other fields may hold what an upstream or the database said, secrets too. */
function brief(detail: unknown): unknown {
  if (!types.isNativeError(detail)) return detail;
  const { code, message } = detail as NodeJS.ErrnoException;
  return [code, message].filter(Boolean).join(': ');
}
