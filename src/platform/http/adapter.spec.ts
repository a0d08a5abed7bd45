import { IncomingMessage, ServerResponse, type Server } from 'node:http';
import { connect, Socket } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import { listen, shut } from '../../../test/support/upstream/upstream-net.js';
import { until } from '../../../test/support/until.js';
import { verifies } from '../../../test/support/verifies.js';
import { loadEnv } from '../../config/env.js';
import { Tuning } from '../../config/tuning.js';
import { SlipwayAdapter } from './adapter.js';

describe('Requests that arrive together', () => {
  it('wait only if they have a body and no key', () => {
    const handled: (string | undefined)[] = [];
    const adapter = new SlipwayAdapter(loadEnv({}), new Tuning(), { take: (request) => handled.push(request.url) > 0 });
    adapter.initHttpServer({});
    const arrive = (url: string, headers: Record<string, string>) => {
      const request = Object.assign(new IncomingMessage(new Socket()), { method: 'POST', url, headers });
      const response = new ServerResponse(request);
      response.assignSocket(request.socket);
      adapter.getHttpServer().emit('request', request, response);
    };
    for (const name of ['/a', '/b', '/c']) arrive(name, { 'content-length': '9' });
    arrive('/health', {});
    arrive('/accounts', { 'content-length': '9', authorization: 'Bearer x' });
    expect(handled).toEqual(['/a', '/b', '/health', '/accounts']);
  });
});

describe('Requests that a client sends without waiting for answers', () => {
  /** A service that answers nothing by itself, and a connection to it. */
  async function connected() {
    const answers: ServerResponse[] = [];
    const adapter = new SlipwayAdapter(loadEnv({}), new Tuning(), {
      take: (_, response) => answers.push(response) > 0,
    });
    adapter.initHttpServer({});
    const server = adapter.getHttpServer() as Server;
    let arrived = 0;
    server.on('request', () => (arrived += 1));
    const client = connect(await listen(server), '127.0.0.1');
    let text = '';
    client.on('data', (chunk: Buffer) => (text += chunk.toString()));
    const send = (count: number) => client.write('GET /a HTTP/1.1\r\nhost: a\r\n\r\n'.repeat(count));
    const bodies = () => [...text.matchAll(/<(\d+)>/g)].map(([, number]) => Number(number));
    return { answers, client, send, bodies, arrived: () => arrived, text: () => text, shut: () => shut(server) };
  }

  const sixteen = Array.from({ length: 16 }, (_, n) => n);

  verifies('limits:pipelining', 'are executed up to 16; the connection closes after the 16th answer', async () => {
    const { answers, client, send, bodies, text, shut: end } = await connected();
    send(5_000);
    await until(() => answers.length === 16, 'requests are executed');
    answers.toReversed().forEach((answer, n) => answer.end(`<${answers.length - 1 - n}>`));
    await until(() => client.readableEnded, 'the connection is closed');
    expect(answers.length).toBe(16);
    expect(bodies()).toEqual(sixteen);
    expect(text().match(/connection: close/gi)?.length).toBe(1);
    await end();
  });

  verifies('limits:pipelining', 'are not executed later, when the first ones complete', async () => {
    const { answers, client, send, bodies, arrived, shut: end } = await connected();
    send(16);
    await until(() => answers.length === 16, 'all are executed');
    answers.forEach((answer, n) => n > 0 && answer.end(`<${n}>`));
    send(1);
    await until(() => arrived() === 17, 'one more has arrived');
    answers[0]?.end('<0>');
    send(20);
    await until(() => client.readableEnded || client.destroyed, 'the connection is closed');
    expect(answers.length).toBe(16);
    expect(bodies()).toEqual(sixteen);
    await end();
  });

  verifies('limits:pipelining', 'are executed as long as at most 16 wait', async () => {
    const { answers, client, send, bodies, shut: end } = await connected();
    for (const count of [16, 32, 48]) {
      send(16);
      await until(() => answers.length === count, 'all are executed');
      answers.slice(-16).forEach((answer, n) => answer.end(`<${n}>`));
      await until(() => bodies().length === count, 'all are answered');
    }
    expect(client.readableEnded).toBe(false);
    client.destroy();
    await end();
  });
});

describe('A stop', () => {
  verifies('stop:graceful', 'serves connections that nobody has accepted, after it has closed the port', async () => {
    const adapter: SlipwayAdapter = new SlipwayAdapter(loadEnv({}), new Tuning(), {
      take: (_, response) => {
        const { listening } = adapter.getHttpServer() as Server;
        return Boolean(
          response
            .setHeader('connection', 'close')
            .writeHead(listening ? 500 : 200)
            .end('ok'),
        );
      },
    });
    adapter.initHttpServer({});
    const port = await listen(adapter.getHttpServer());
    const outcomes = Array.from({ length: 8 }, () => {
      const client = connect(port, '127.0.0.1', () => client.write('GET /a HTTP/1.1\r\nhost: a\r\n\r\n'));
      return new Promise<string>((resolve) => {
        client.once('data', (answer: Buffer) => resolve(answer.toString().slice(0, 15)));
        client.once('error', ({ message }) => resolve(message));
      });
    });
    // In this turn of the event loop all connect, and none is accepted.
    await new Promise((connected) => process.nextTick(() => process.nextTick(connected)));
    await adapter.close();
    expect(await Promise.all(outcomes)).toEqual(outcomes.map(() => 'HTTP/1.1 200 OK'));
  });
});
