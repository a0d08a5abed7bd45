import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { describe, expect } from '@jest/globals';
import { loadEnv } from '../../config/env.js';
import { RateCounter } from '../../platform/limits/rate-counter.js';
import { verifies } from '../../../test/support/verifies.js';
import { RequestLimits } from './request-limits.service.js';

describe('a call whose client left before it began', () => {
  verifies('limits:calls-at-once', 'is not counted, since its end would never come', async () => {
    const env = loadEnv({ ACCOUNT_LIMITS: 'callsAtOnce=1' });
    const limits = new RequestLimits(env, new RateCounter(env));
    const caller = { accountId: 'a', keyId: 'k', isOperator: false };
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
