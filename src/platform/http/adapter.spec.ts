import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect } from '@jest/globals';
import { verifies } from '../../../test/support/verifies.js';
import { loadEnv } from '../../config/env.js';
import { SlipwayAdapter } from './adapter.js';

describe('Requests that arrive together', () => {
  verifies('limits:keyless-bodies', 'wait only if they have a body and no key', () => {
    const adapter = new SlipwayAdapter(loadEnv({}));
    adapter.initHttpServer({});
    const handled: (string | undefined)[] = [];
    adapter.fastPath = (request) => handled.push(request.url) > 0;
    const arrive = (url: string, headers: Record<string, string>) => {
      const request = Object.assign(new IncomingMessage(new Socket()), { method: 'POST', url, headers });
      adapter.getHttpServer().emit('request', request, new ServerResponse(request));
    };
    for (const name of ['/a', '/b', '/c']) arrive(name, { 'content-length': '9' });
    arrive('/health', {});
    arrive('/accounts', { 'content-length': '9', authorization: 'Bearer x' });
    expect(handled).toEqual(['/a', '/b', '/health', '/accounts']);
  });
});
