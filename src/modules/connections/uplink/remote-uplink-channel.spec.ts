import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beforeAll, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { Env } from '../../../config/env.js';
import { UpstreamTimeoutError } from '../../../mcp/protocol/mcp-errors.js';
import { textFrame } from '../../../platform/internal-http/frames.js';
import { InternalClient } from '../../../platform/internal-http/internal-client.js';
import { InternalSignatures } from '../../../platform/internal-http/internal-signatures.js';
import { until } from '../../../../test/support/until.js';
import { RemoteUplinkChannel } from './remote-uplink-channel.js';

beforeAll(() => Logger.overrideLogger(false));

it('a process that freezes after a request of its own blocks neither the call nor the reply to that request', async () => {
  let asked = 0;
  let left = 0;
  const frozen = createServer((request, response) => {
    asked += 1;
    request.socket.once('close', () => (left += 1));
    if (asked > 1) return;
    const message = { type: 'client-request', id: 'q', method: 'roots/list' };
    response.writeHead(200).write(textFrame('message', JSON.stringify(message)));
  }).listen(0, '127.0.0.1');
  await once(frozen, 'listening');
  const url = `http://127.0.0.1:${(frozen.address() as AddressInfo).port}`;
  const signatures = new InternalSignatures(
    Object.assign(new Env(), { encryptionKeys: [{ id: 'a', secret: Buffer.alloc(32) }] }),
  );
  const channel = new RemoteUplinkChannel(new InternalClient(signatures), url, { connectionId: 'c', tunnel: '1' });
  const call = channel.request({
    method: 'tools/call',
    timeoutMs: 100,
    profile: { key: 'k', capabilities: { roots: {} } },
    onRequest: () => Promise.resolve({ result: '{}' }),
  });
  const error: unknown = await call.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(UpstreamTimeoutError);
  expect((error as Error).message).toMatch(/whether the call was carried out is unknown/i);
  expect(asked).toBe(2);
  await until(() => left === 2, 'both requests are broken off');
  frozen.close();
});
