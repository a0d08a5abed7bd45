import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { loadEnv } from '../../config/env.js';
import { OutcomeUnknownError } from './error-codec.js';
import { InternalClient, ProcessUnreachedError, RequestRefusedError } from './internal-client.js';
import { InternalAnswer, InternalServer, type InternalRequest } from './internal-server.js';
import { InternalSignatures } from './internal-signatures.js';

const signatures = (fill: number, url?: string) =>
  new InternalSignatures(
    loadEnv({ ENCRYPTION_KEYS: `k:${Buffer.alloc(32, fill).toString('base64')}`, ADVERTISE_URL: url }),
  );

const closing: (() => void)[] = [];

beforeAll(() => Logger.overrideLogger(false));
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

/** A process that answers so. */
async function serving(answer: (response: ServerResponse, request: InternalRequest<object>) => void): Promise<string> {
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    try {
      answer(response, await internal.accept(request));
    } catch {
      response.writeHead(404).end();
    }
  };
  const server = createServer((request, response) => void serve(request, response)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const internal = new InternalServer(signatures(1, url));
  closing.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return url;
}

/** Messages and outcome of one request. */
async function ask(url: string, fill = 1, body = 'body') {
  const client = new InternalClient(signatures(fill));
  closing.push(() => void client.onApplicationShutdown());
  const messages: unknown[] = [];
  const { ended } = client.follow({ url, path: '/internal/x', head: { a: 1 }, body }, (message) =>
    messages.push(message),
  );
  const error = await ended.then(
    () => null,
    (reason: unknown) => reason,
  );
  return { messages, error };
}

describe('a request to another process', () => {
  it('arrives with head and body and gets a response of messages', async () => {
    const url = await serving((response, { head, text }) => {
      const answer = new InternalAnswer(response);
      void answer.endAfter(text().then((body) => answer.message({ head, body })));
    });
    expect(await ask(url)).toEqual({ messages: [{ head: { a: 1 }, body: 'body' }], error: null });
  });

  it('has an unknown outcome when the response is incomplete, however the connection closes', async () => {
    for (const stop of [
      (response: ServerResponse) => response.end(),
      (response: ServerResponse) => response.destroy(),
    ]) {
      const url = await serving((response) => {
        new InternalAnswer(response).message({ n: 1 });
        setImmediate(() => stop(response));
      });
      const { messages, error } = await ask(url);
      expect(messages.length).toBeLessThanOrEqual(1);
      expect(error).toBeInstanceOf(OutcomeUnknownError);
    }
  });

  it('has an unknown outcome when the failure is a bug', async () => {
    const url = await serving((response) => {
      void new InternalAnswer(response).endAfter(Promise.reject(new TypeError('bug')));
    });
    const { error } = await ask(url);
    expect(error).toBeInstanceOf(OutcomeUnknownError);
    expect((error as Error).message).not.toContain('bug');
  });

  it('is refused without the secret, and counts as not sent when nothing listens', async () => {
    const url = await serving((response) => new InternalAnswer(response).complete());
    expect((await ask(url, 2)).error).toBeInstanceOf(RequestRefusedError);
    expect((await ask('http://127.0.0.1:1')).error).toBeInstanceOf(ProcessUnreachedError);
  });

  it('names the clock skew as a possible reason when it is rejected', async () => {
    let date = new Date();
    const server = createServer((_request, response) => response.writeHead(404, { date: date.toUTCString() }).end());
    await once(server.listen(0, '127.0.0.1'), 'listening');
    closing.push(() => void server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    expect((await ask(url)).error).toMatchObject({ clockSeconds: null });
    date = new Date(Date.now() + 3_600_000);
    const { error } = await ask(url);
    expect(Math.abs((error as RequestRefusedError).clockSeconds ?? 0)).toBeGreaterThan(3_590);
  });

  it('ignores frames after the end of its response', async () => {
    const faults: Error[] = [];
    const url = await serving((response) => {
      response.on('error', (error) => faults.push(error));
      const answer = new InternalAnswer(response);
      answer.message({ n: 1 });
      answer.complete();
      answer.message({ n: 2 });
      response.once('close', () => answer.message({ n: 3 }));
    });
    expect(await ask(url)).toEqual({ messages: [{ n: 1 }], error: null });
    expect(faults).toEqual([]);
  });
});
