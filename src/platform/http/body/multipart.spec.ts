import http, { type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { listen, shut } from '../../../../test/support/upstream/upstream-net.js';
import { until } from '../../../../test/support/until.js';
import { DomainError, InvalidInputError } from '../../errors/domain-error.js';
import { loadEnv } from '../../../config/env.js';
import { Tuning } from '../../../config/tuning.js';
import { BodyBudget } from './body-budget.js';
import { closeIfUnread } from './unread-body.js';
import { readMultipart, type Multipart, type MultipartShape } from './multipart.js';

const shape = { fields: { payload: 20, note: 5 }, files: ['module', 'archive'] };

/** How a reading ended. */
type End = { form: Multipart<string> } | { error: Error };

const budget = new BodyBudget(loadEnv({}), new Tuning());
let server: http.Server;
let port: number;
/** Readings that ended, oldest first. */
let ends: End[] = [];
/** File streams that were handed out. */
let streams: Readable[] = [];
/** Of the requests that come from now on. */
let take: MultipartShape<string>['take'];
let shapeNow: Pick<MultipartShape<string>, 'fields' | 'files'>;
/** Waited for before a request is read, as a guard would make it wait. */
let guard: (request: IncomingMessage) => Promise<void>;

async function textOf(file: Readable): Promise<string> {
  let text = '';
  for await (const chunk of file) text += String(chunk);
  return text;
}

async function answer(request: IncomingMessage, response: http.ServerResponse): Promise<void> {
  await guard(request);
  try {
    const form = await readMultipart<string>(request, {
      ...shapeNow,
      take: (name, file, info, fields) => {
        streams.push(file);
        return take(name, file, info, fields);
      },
    });
    ends.push({ form });
    response.end(JSON.stringify(form));
  } catch (error) {
    ends.push({ error: error as Error });
    response.writeHead(error instanceof DomainError ? 400 : 500).end((error as Error).message);
  }
}

beforeAll(async () => {
  server = http.createServer((request, response) => {
    closeIfUnread(request, response);
    budget.admit(request, response, 'account');
    void answer(request, response);
  });
  port = await listen(server);
});
afterAll(() => shut(server));

function reset(): void {
  ends = [];
  streams = [];
  take = async (name, file, { filename }) => `${name} ${filename} ${await textOf(file)}`;
  shapeNow = shape;
  guard = async () => undefined;
}
beforeAll(reset);
afterEach(async () => {
  // No stream of the form is left open, whatever happened to it.
  await until(() => streams.every((stream) => stream.destroyed), 'every file stream is closed');
  reset();
});

const BOUNDARY = 'x-boundary';

/** A part as it stands in a body; with a file name it is a file. */
function part(name: string, content: string, filename?: string): string {
  const file = filename === undefined ? '' : `; filename="${filename}"\r\ncontent-type: text/plain`;
  return `--${BOUNDARY}\r\ncontent-disposition: form-data; name="${name}"${file}\r\n\r\n${content}\r\n`;
}

const closing = `--${BOUNDARY}--\r\n`;

/** Posts a body as it is. */
async function post(body: string | Buffer, type = `multipart/form-data; boundary=${BOUNDARY}`) {
  const response = await fetch(`http://127.0.0.1:${port}`, { method: 'POST', body, headers: { 'content-type': type } });
  return { status: response.status, text: await response.text() };
}

/** Opens a request by hand; `length` is what it promises. */
function opened(length: number): Socket {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  socket.write(
    `POST / HTTP/1.1\r\nhost: a\r\ncontent-type: multipart/form-data; boundary=${BOUNDARY}\r\ncontent-length: ${length}\r\n\r\n`,
  );
  return socket;
}

describe('readMultipart', () => {
  it('reads texts and files, in any order', async () => {
    const { status, text } = await post(
      part('module', 'code', 'ä.js') + part('payload', '{"a":"ä"}') + part('archive', '', 'b.zip') + closing,
    );
    expect(status).toBe(200);
    expect(JSON.parse(text)).toEqual({
      fields: { payload: '{"a":"ä"}' },
      files: { module: 'module ä.js code', archive: 'archive b.zip ' },
    });
  });

  it('reads a text that comes as a file', async () => {
    const { text } = await post(part('module', 'code', 'a.js') + part('payload', '{"a":"ä"}', 'blob') + closing);
    expect(JSON.parse(text)).toEqual({ fields: { payload: '{"a":"ä"}' }, files: { module: 'module a.js code' } });
  });

  it('streams large files, one file at a time', async () => {
    let now = 0;
    let most = 0;
    let pieces = 0;
    take = async (_name, file) => {
      most = Math.max(most, (now += 1));
      let bytes = 0;
      for await (const chunk of file as AsyncIterable<Buffer>) {
        pieces += 1;
        bytes += chunk.length;
      }
      now -= 1;
      return String(bytes);
    };
    const large = 'x'.repeat(3_000_000);
    const { text } = await post(part('module', large, 'a') + part('archive', large, 'b') + closing);
    expect((JSON.parse(text) as Multipart<string>).files).toEqual({ module: '3000000', archive: '3000000' });
    expect(most).toBe(1);
    expect(pieces).toBeGreaterThan(20);
  });

  it('accepts a text of exactly the limit and no larger one', async () => {
    expect((await post(part('note', '12345') + closing)).status).toBe(200);
    expect((await post(part('payload', 'x'.repeat(20)) + part('note', 'ää') + closing)).status).toBe(200);
    for (const [name, value, bytesMax] of [
      ['note', '123456', 5],
      ['note', 'äää', 5],
      ['payload', 'x'.repeat(21), 20],
      ['payload', 'x'.repeat(2_000_000), 20],
    ] as const) {
      const refused = await post(part(name, value) + closing);
      expect(refused).toEqual({ status: 400, text: `The part "${name}" is larger than ${bytesMax} bytes` });
    }
  });

  it.each([
    [
      'an unknown text',
      part('other', 'x'),
      'The part "other" is not known: the form takes payload, note, module, archive',
    ],
    [
      'an unknown file',
      part('other', 'x', 'a'),
      'The part "other" is not known: the form takes payload, note, module, archive',
    ],
    [
      'a name of objects',
      part('toString', 'x', 'a'),
      'The part "toString" is not known: the form takes payload, note, module, archive',
    ],
    ['a long file where a text is due', part('note', 'x'.repeat(6), 'a'), 'The part "note" is larger than 5 bytes'],
    ['a text and a file of one name', part('note', 'a') + part('note', 'b', 'b'), 'The part "note" is there twice'],
    ['a text where a file is due', part('module', 'x'), 'The part "module" must be a file, not text'],
    ['two texts of one name', part('note', 'a') + part('note', 'b'), 'The part "note" is there twice'],
    ['two files of one name', part('module', 'a', 'a') + part('module', 'b', 'b'), 'The part "module" is there twice'],
  ])('refuses %s', async (_what, body, text) => {
    expect(await post(body + closing)).toEqual({ status: 400, text });
    // The same with a file in front that is still being read.
    const large = part('archive', 'x'.repeat(500_000), 'a.zip');
    expect(await post(large + body + closing)).toEqual({ status: 400, text });
    expect(ends.every((end) => 'error' in end && end.error instanceof InvalidInputError)).toBe(true);
  });

  it('refuses more parts than the form has', async () => {
    shapeNow = { fields: {}, files: ['*'] };
    const body = ['a', 'b', 'c', 'd'].map((name) => part(name, 'x', name)).join('') + closing;
    expect(await post(body)).toEqual({ status: 400, text: 'The form holds too many parts' });
  });

  it('refuses a body that is not a form', async () => {
    const advice = 'Send the body as multipart/form-data with a boundary';
    expect(await post('{}', 'application/json')).toEqual({ status: 400, text: advice });
    expect(await post('a', 'multipart/form-data')).toEqual({ status: 400, text: advice });
    expect(await post('note=b', 'application/x-www-form-urlencoded')).toEqual({ status: 400, text: advice });
    for (const body of [
      '',
      'no part at all',
      part('note', 'x'),
      part('module', 'x', 'a').slice(0, -2),
      `--${BOUNDARY}\r\n`,
    ]) {
      const refused = await post(body);
      expect([body, refused.status]).toEqual([body, 400]);
      expect(refused.text).toContain('The body is not a complete multipart/form-data form');
    }
  });

  it('rethrows the error of the receiver of a file unchanged', async () => {
    class FullError extends Error {}
    take = () => Promise.reject(new FullError('The disk is full'));
    expect(await post(part('module', 'x'.repeat(1_000_000), 'a') + closing)).toEqual({
      status: 500,
      text: 'The disk is full',
    });
    expect(ends).toEqual([{ error: expect.any(FullError) }]);
  });

  it('answers a refused upload of any size and closes the connection', async () => {
    const headers = { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` };
    const status = await new Promise((resolve, reject) => {
      const request = http.request({ port, method: 'POST', headers }, (response) => {
        expect(response.headers.connection).toBe('close');
        resolve(response.statusCode);
      });
      request.on('error', reject);
      request.end(part('other', 'x'.repeat(20_000_000), 'a') + closing);
    });
    expect(status).toBe(400);
  });

  it('cuts off a client that keeps sending after a refusal', async () => {
    const socket = opened(10_000_000_000);
    socket.write(part('other', 'x') + part('note', ''));
    const more = Buffer.alloc(1_000_000);
    const pour = () => {
      while (!socket.destroyed && socket.write(more));
    };
    socket.on('drain', pour).resume();
    pour();
    await until(() => socket.destroyed, 'the connection is closed');
    expect(socket.bytesWritten).toBeLessThan(200_000_000);
  });
});

function connections(): Promise<number> {
  return new Promise((resolve, reject) => {
    server.getConnections((error, count) => (error ? reject(error) : resolve(count)));
  });
}

describe('readMultipart of a client that leaves', () => {
  beforeEach(async () => {
    await until(async () => (await connections()) === 0, 'earlier connections are closed');
  });

  const brokenOff = {
    error: new InvalidInputError('The body is not a complete multipart/form-data form: it broke off'),
  };

  it.each([
    ['in the head of a part', `--${BOUNDARY}\r\ncontent-dispo`],
    ['in a text', part('note', 'x').slice(0, -1)],
    ['in a file', part('module', 'x'.repeat(100_000), 'a').slice(0, -10)],
    ['between parts', part('module', 'x', 'a')],
    ['before the first byte', ''],
  ])('%s, says so', async (_where, body) => {
    const socket = opened(1_000_000);
    socket.write(body);
    await until(async () => (await connections()) === 1, 'it is connected');
    if (body.includes('filename')) await until(() => streams.length === 1, 'the file has begun');
    socket.destroy();
    await until(() => ends.length === 1, 'the reading ends');
    expect(ends).toEqual([brokenOff]);
    expect((ends[0] as { error: Error }).error).toBeInstanceOf(InvalidInputError);
  });

  it('after it sent everything has its form read', async () => {
    let go: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (go = resolve));
    take = async (_name, file) => {
      await held;
      return textOf(file);
    };
    const body = part('module', 'x', 'a') + closing;
    const socket = opened(body.length);
    socket.write(body);
    await until(() => streams.length === 1, 'the file has begun');
    socket.destroy();
    go();
    await until(() => ends.length === 1, 'the reading ends');
    expect(ends).toEqual([{ form: expect.anything() }]);
  });

  it('before its body is read has that as the error', async () => {
    let hasLeft = false;
    guard = (request) =>
      new Promise((resolve) => {
        request.on('close', () => {
          hasLeft = true;
          setImmediate(resolve);
        });
      });
    const socket = opened(1_000);
    socket.write(part('note', 'x'));
    await until(async () => (await connections()) === 1, 'it is connected');
    socket.destroy();
    await until(() => ends.length === 1, 'the reading ends');
    expect(hasLeft).toBe(true);
    expect(ends).toEqual([brokenOff]);
  });
});
