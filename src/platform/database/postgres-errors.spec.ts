import { describe, expect, it } from '@jest/globals';
import { QueryFailedError, QueryRunnerAlreadyReleasedError } from 'typeorm';
import { isDatabaseUnreachable } from './postgres-errors.js';

const failed = (code: string) => new QueryFailedError('SELECT 1', [], Object.assign(new Error('x'), { code }));

describe('isDatabaseUnreachable', () => {
  it.each(['08000', '08006', '08P01', '53300', '53100', '57P01', '57P02', '57P03', 'ECONNREFUSED', 'ECONNRESET'])(
    'is true for %s, bare and in a failed query',
    (code) => {
      expect(isDatabaseUnreachable(Object.assign(new Error(''), { code }))).toBe(true);
      expect(isDatabaseUnreachable(failed(code))).toBe(true);
    },
  );

  it.each([
    'Connection terminated unexpectedly',
    'Connection terminated due to connection timeout',
    'timeout exceeded when trying to connect',
    'Query read timeout',
    'Client has encountered a connection error and is not queryable',
  ])('is true for “%s”', (message) => {
    expect(isDatabaseUnreachable(new Error(message))).toBe(true);
    expect(isDatabaseUnreachable(new QueryFailedError('SELECT 1', [], new Error(message)))).toBe(true);
  });

  it('is true for a transaction whose connection broke', () => {
    expect(isDatabaseUnreachable(new QueryRunnerAlreadyReleasedError())).toBe(true);
  });

  it.each(['23505', '23503', '42P01', '22P02', '40001', '57014', '3D000', 'ENOENT'])('is false for %s', (code) => {
    expect(isDatabaseUnreachable(failed(code))).toBe(false);
  });

  it.each([undefined, null, 'ECONNREFUSED', { code: 'ECONNREFUSED' }, new Error('The connection terminated'), 7])(
    'does not say so of %p',
    (error) => {
      expect(isDatabaseUnreachable(error)).toBe(false);
    },
  );
});
