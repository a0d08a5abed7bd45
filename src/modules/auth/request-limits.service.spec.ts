import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { describe, expect, jest } from '@jest/globals';
import { loadEnv } from '../../config/env.js';
import { Tuning } from '../../config/tuning.js';
import { RevocationRegistry } from '../../platform/http/revocation-registry.js';
import { RateCounter } from '../../platform/limits/rate-counter.js';
import { NO_MEMBERSHIPS } from './access.types.js';
import { times } from '../../../test/support/mcp/calls.js';
import { verifies } from '../../../test/support/verifies.js';
import { TooManyError } from '../../platform/errors/domain-error.js';
import { RequestLimits } from './request-limits.service.js';

describe('the requests of a minute', () => {
  const keys = times(2, (i) => ({
    accountId: 'a',
    keyId: `k${i}`,
    isOperator: false,
    scopes: null,
    memberships: NO_MEMBERSHIPS,
  }));

  verifies('limits:requests', 'are limited by key, by account and by address', async () => {
    jest.useFakeTimers({ now: 0 });
    try {
      const env = loadEnv({ ACCOUNT_LIMITS: 'keyRequestsPerMinute=3,requestsPerMinute=5' });
      const tuning = new Tuning({ requestsPerAddress: 2 });
      const limits = new RequestLimits(env, tuning, new RateCounter(env), new RevocationRegistry());
      const request = { socket: { remoteAddress: '203.0.113.1' }, headers: {} } as IncomingMessage;
      const isAdmitted = (admit: () => void) => {
        try {
          admit();
          return true;
        } catch (error) {
          expect(error).toBeInstanceOf(TooManyError);
          return false;
        }
      };
      const minute = () => ({
        first: times(4, () => isAdmitted(() => limits.admit(request, keys[0], null))),
        second: times(2, () => isAdmitted(() => limits.admit(request, keys[1], null))),
        stranger: times(3, () => isAdmitted(() => limits.admitStranger(request, null))),
      });
      const admitted = { first: [true, true, true, false], second: [true, false], stranger: [true, true, false] };
      expect(minute()).toEqual(admitted);
      await jest.advanceTimersByTimeAsync(60_000);
      expect(minute()).toEqual(admitted);
    } finally {
      jest.useRealTimers();
    }
  });
});

describe('a call whose client left before it began', () => {
  verifies('limits:calls-at-once', 'is not counted, since its end would not be reported', async () => {
    const env = loadEnv({ ACCOUNT_LIMITS: 'callsAtOnce=1' });
    const limits = new RequestLimits(env, new Tuning(), new RateCounter(env), new RevocationRegistry());
    const caller = { accountId: 'a', keyId: 'k', isOperator: false, scopes: null, memberships: NO_MEMBERSHIPS };
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
    client.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
    const [, response] = (await once(server, 'request')) as [unknown, ServerResponse];
    const left = once(response, 'close');
    client.destroy();
    await left;
    limits.beginCall(caller, response);
    expect(() => limits.beginCall(caller, response)).not.toThrow();
    server.close();
  });
});
