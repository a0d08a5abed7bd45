import { mkdtemp, rm } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Pool } from 'undici';
import { openTraceSink, type TailItem } from './trace-sink.js';

describe('the receiver of tail reports', () => {
  let folder: string;
  let close: () => Promise<void>;
  let pool: Pool;
  let onItems: TailItem[];

  beforeEach(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'slipway-sink-'));
    onItems = [];
    close = await openTraceSink(path.join(folder, 'log'), (items) => onItems.push(...items));
    pool = new Pool('http://sink', { socketPath: path.join(folder, 'log') });
  });
  afterEach(async () => {
    await pool.destroy();
    await close();
    await rm(folder, { recursive: true });
  });

  const post = async (body: string) => {
    const { statusCode, body: answer } = await pool.request({ path: '/', method: 'POST', body });
    await answer.dump();
    return statusCode;
  };

  it('accepts reports and refuses anything else', async () => {
    const item = { id: 'x', hasThrown: false, isTruncated: false, lines: [[1, 'log', 'm']], exceptions: [] };
    expect(await post(JSON.stringify([item]))).toBe(204);
    const bad = ['', '{', '{}', '[1]', '[{"id":1}]', JSON.stringify([{ ...item, lines: [[1, 'log', 5]] }])];
    bad.push(JSON.stringify([{ ...item, lines: [[1e300, 'log', 'm']] }]));
    bad.push(JSON.stringify([{ ...item, exceptions: [null] }]));
    for (const body of bad) expect([body, await post(body)]).toEqual([body, 400]);
    expect(onItems).toHaveLength(1);
  });

  it('refuses a report of more than 2 MiB, and survives input that is not HTTP', async () => {
    await expect(post('x'.repeat(3_000_000))).rejects.toThrow();
    const socket = createConnection(path.join(folder, 'log'));
    await new Promise((resolve) => {
      socket.on('error', () => undefined).once('close', resolve);
      socket.resume();
      socket.write('nonsense\r\n\r\n');
    });
    expect(await post('[]')).toBe(204);
  });
});
