import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { createHmac } from 'node:crypto';
import { keysFor } from '../../../platform/http/secrets.js';
import { SessionIds } from './session-ids.js';

const DAY_MS = 24 * 60 * 60_000;
const capabilities = { elicitation: { url: {} }, roots: {} };

/** The ids of a process that seals with these keys, each of 32 times this byte. */
function idsWith(...bytes: number[]): SessionIds {
  return new SessionIds({ encryptionKeys: bytes.map((byte) => ({ id: `k${byte}`, secret: Buffer.alloc(32, byte) })) });
}

afterEach(() => {
  jest.useRealTimers();
});

describe('a session id', () => {
  it('contains the negotiated values, readable by every process with the same key', () => {
    const { id, session } = idsWith(1).mint('alice target', '2025-06-18', capabilities);
    const opened = idsWith(2, 1).open(id, 'alice target');
    expect(opened).toEqual({ ...session, expiresAt: Math.floor(session.expiresAt / 1000) * 1000 });
    expect(opened).toMatchObject({ version: '2025-06-18', capabilities: ['elicitation', 'roots'] });
    expect(idsWith(2).open(id, 'alice target')).toBeNull();
  });

  it('contains what upstreams learn of the client, with its flags and extensions', () => {
    const given = {
      ...capabilities,
      roots: { listChanged: true },
      extensions: { 'io.acme/ui': { mimeTypes: ['text/html'] } },
    };
    const { id } = idsWith(1).mint('alice', '2025-11-25', given);
    const opened = idsWith(1).open(id, 'alice');
    expect(opened).toMatchObject({ capabilities: ['elicitation', 'elicitation.url', 'roots'], passed: given });
    expect(opened?.shared).toMatchObject({ capabilities: { extensions: given.extensions }, isShared: true });
  });

  it('contains the name of the client, with extensions too', () => {
    for (const passed of [{}, { extensions: { 'io.acme/ui': {} } }]) {
      const { id, session } = idsWith(1).mint('alice', '2025-11-25', passed, 'Über client 1');
      const opened = idsWith(1).open(id, 'alice');
      expect([opened?.client, session.client, opened?.passed]).toEqual(['Über client 1', 'Über client 1', passed]);
    }
  });

  it('stays valid when it was issued by a version without extensions', () => {
    const secret = keysFor({ encryptionKeys: [{ id: 'k1', secret: Buffer.alloc(32, 1) }] }, 'slipway mcp sessions')[0];
    const fields = `key ${Math.floor(Date.now() / 1000) + 60} 2025-11-25 elicitation+elicitation.url`;
    const payload = Buffer.from(fields).toString('base64url');
    const signature = createHmac('sha256', secret).update(`${payload}\nalice`).digest('base64url');
    expect(idsWith(1).open(`sw1.${payload}.${signature}`, 'alice')).toMatchObject({
      capabilities: ['elicitation', 'elicitation.url'],
      client: null,
      passed: { elicitation: { url: {} } },
      shared: undefined,
    });
  });

  it('is refused for another caller or target, also after its own caller used it', () => {
    const ids = idsWith(1);
    const { id } = ids.mint('alice target', '2025-06-18', capabilities);
    expect(ids.open(id, 'bob target')).toBeNull();
    expect(ids.open(id, 'alice target')).not.toBeNull();
    for (const other of ['bob target', 'alice elsewhere', '']) expect(ids.open(id, other)).toBeNull();
  });

  it('expires after a day, also in a process that has it cached', async () => {
    jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate'] });
    const [ids, others] = [idsWith(1), idsWith(1)];
    const { id } = ids.mint('alice', '2025-06-18', capabilities);
    await jest.advanceTimersByTimeAsync(DAY_MS - 2_000);
    expect(ids.open(id, 'alice')).not.toBeNull();
    await jest.advanceTimersByTimeAsync(2_001);
    expect([ids.open(id, 'alice'), others.open(id, 'alice')]).toEqual([null, null]);
  });

  it('is refused when a character was changed, and when it was not signed here', () => {
    const ids = idsWith(1);
    const { id } = ids.mint('alice', '2025-06-18', capabilities);
    for (let at = 4; at < id.length; at += 1) {
      const changed = `${id.slice(0, at)}${id[at] === 'A' ? 'B' : 'A'}${id.slice(at + 1)}`;
      expect([at, idsWith(1).open(changed, 'alice')]).toEqual([at, null]);
    }
    expect(ids.open('of-the-client', 'alice')).toBeNull();
  });
});
