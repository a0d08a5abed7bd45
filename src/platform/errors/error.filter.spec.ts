import type { IncomingMessage } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { DomainError, InvalidInputError } from './domain-error.js';
import { ErrorForm, familyOf } from './error-form.decorator.js';
import { logFailure } from './log-failure.js';

class PeerError extends DomainError {
  readonly kind = 'upstream';
  readonly code = 'upstream_error';
}

const lines: { level: string; fields: Record<string, unknown> }[] = [];
const at = (level: string) => (fields: Record<string, unknown>) => void lines.push({ level, fields });
const request = {
  method: 'POST',
  url: '/connect/acme/c1?token=canary',
  headers: { 'x-request-id': 'request-1', authorization: 'Bearer canary' },
} as unknown as IncomingMessage;

beforeEach(() => {
  lines.length = 0;
  const [log, error, warn, debug] = ['log', 'error', 'warn', 'debug'].map(at);
  Logger.overrideLogger({ log, error, warn, debug });
});
afterEach(() => Logger.overrideLogger(false));

function logged(error: unknown) {
  logFailure(new Logger('http'), error, request);
  expect(lines).toHaveLength(1);
  expect(JSON.stringify(lines)).not.toContain('canary');
  return lines[0];
}

describe('logFailure', () => {
  it('logs the failure with the request id and without the query of the URL', () => {
    expect(logged(new PeerError('The peer is down'))).toMatchObject({
      level: 'debug',
      fields: { msg: 'POST /connect/acme/c1 answered 502', requestId: 'request-1', reason: 'The peer is down' },
    });
  });

  it('logs only code and message of a cause: other fields may contain what the other side sent', () => {
    const cause = Object.assign(new Error('Expected HTTP/'), { code: 'HPE_INVALID', data: 'x-secret: canary' });
    expect(logged(new PeerError('No HTTP', cause))?.fields.detail).toBe('HPE_INVALID: Expected HTTP/');
  });

  it('does not log the invalid value of an input', () => {
    expect(logged(new InvalidInputError('Unexpected token in "canary"'))?.fields.reason).toBe('validation_error');
  });

  it('warns of an unavailable database without the route, so that equal warnings are counted', () => {
    const away = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:5432'), { code: 'ECONNREFUSED' });
    logFailure(new Logger('http'), away, request);
    const [warning, line] = lines;
    expect(warning).toMatchObject({
      level: 'warn',
      fields: { msg: 'requests are rejected with 503, since the database does not respond', requestId: 'request-1' },
    });
    expect(line).toMatchObject({ level: 'debug', fields: { msg: 'POST /connect/acme/c1 answered 503' } });
    for (const { fields } of lines) expect(fields).not.toHaveProperty('err');
  });

  it('logs an unexpected failure as an error with its cause', () => {
    const error = new TypeError('undefined is not a function');
    expect(logged(error)).toMatchObject({
      level: 'error',
      fields: { msg: 'POST /connect/acme/c1 failed', requestId: 'request-1', err: error },
    });
  });
});

describe('familyOf', () => {
  it('follows the declaration of the first path segment, with the method in any case', () => {
    ErrorForm('form-test', (_path, method) => (method === 'PUT' ? 'publishing' : 'connections'))(class {});
    expect(familyOf('/form-test/a', 'PUT')).toBe('publishing');
    expect(familyOf('/form-test', 'put')).toBe('publishing');
    expect(familyOf('/form-test/a')).toBe('connections');
    expect(familyOf('/form-tests/a', 'put')).toBe('registry');
  });
});
