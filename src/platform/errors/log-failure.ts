/** Nothing else in the service logs errors of requests. */
import type { IncomingMessage } from 'node:http';
import { types } from 'node:util';
import type { Logger } from '@nestjs/common';
import { DatabaseUnreachableError } from '../database/postgres-errors.js';
import { statusOf } from './domain-error.js';
import { domainErrorOf } from './error-body.js';

/**
 * Logs a failure: unexpected errors with their cause at error, domain errors in one line at debug. An unreachable database
 * is also a warning that names no route, so that the logger combines the warnings of an outage into one a minute, with
 * their number.
 */
export function logFailure(logger: Logger, error: unknown, request: IncomingMessage): void {
  const route = `${request.method} ${request.url?.split('?')[0]}`;
  const requestId = request.headers['x-request-id'];
  const failure = domainErrorOf(error);
  if (!failure) {
    logger.error({ msg: `${route} failed`, requestId, err: error });
    return;
  }
  // Not logged in full: a message about an input can quote a secret in it.
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

/** Keeps safe fields: others can contain data of an upstream or the database, including secrets. */
function brief(detail: unknown): unknown {
  if (!types.isNativeError(detail)) return detail;
  const { code, message } = detail as NodeJS.ErrnoException;
  return [code, message].filter(Boolean).join(': ');
}
