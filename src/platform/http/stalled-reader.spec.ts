import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { listen, shut } from '../../../test/support/upstream/upstream-net.js';
import { until } from '../../../test/support/until.js';
import { dropStalledReader } from './stalled-reader.js';

const STALL_MS = 2_000;
/** More than the buffers of a connection take. */
const content = Buffer.alloc(30 * 1024 * 1024);

let server: http.Server;
let port: number;
let answers: ServerResponse[] = [];

beforeAll(async () => {
  server = http.createServer((_request, response) => {
    answers.push(response);
    dropStalledReader(response, STALL_MS);
    response.end(content);
  });
  port = await listen(server);
});
afterAll(() => shut(server));

async function begin(agent?: http.Agent): Promise<IncomingMessage> {
  answers = [];
  const [answer] = (await once(http.get({ port, agent: agent ?? false }), 'response')) as [IncomingMessage];
  return answer;
}

describe('a reader', () => {
  it('is disconnected when it stops reading', async () => {
    const answer = await begin();
    answer.pause();
    await until(() => answers[0]?.destroyed, 'the answer is cut off');
    const broken = once(answer, 'error');
    answer.resume();
    expect((await broken)[0]).toMatchObject({ code: 'ECONNRESET' });
  });

  it('receives everything when it is slow but keeps reading, and the connection serves further requests', async () => {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    const started = Date.now();
    for (const pauseMs of [5, 0]) {
      let bytes = 0;
      for await (const chunk of await begin(agent)) {
        bytes += (chunk as Buffer).length;
        if (pauseMs > 0) await wait(pauseMs);
      }
      expect(bytes).toBe(content.length);
    }
    expect(Date.now() - started).toBeGreaterThan(STALL_MS);
    agent.destroy();
  });
});
