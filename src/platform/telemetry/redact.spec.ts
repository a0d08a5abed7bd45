import { randomBytes } from 'node:crypto';
import { Writable } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { QueryFailedError } from 'typeorm';
import { createPino } from './logger.js';
import { redact } from './logger.js';

const canary = 'cAnArY-0123456789';

describe('redact', () => {
  const key = `slipway_${randomBytes(32).toString('base64url')}`;

  it.each([
    key,
    `the key ${key} is wrong`,
    `{"msg":"${key}"}`,
    `${key},${key}`,
    `Authorization: Bearer ${canary}`,
    `{"authorization":"Bearer ${canary}"}`,
    `{"headers":{"Authorization":"Basic ${canary}="}}`,
    `{"Authorization": "${canary}"}`,
    `{"x-api-key":"${canary}"}`,
    `{"apiKey":"${canary}","api_key":"${canary}"}`,
    `{"password" : "${canary}"}`,
    `{"client_secret":"${canary}","access_token":"${canary}"}`,
    `{"set-cookie":"${canary}"}`,
    `{"body":"{\\"token\\":\\"${canary}\\"}"}`,
    `postgres://slipway:${canary}@127.0.0.1:5432/slipway`,
    `connect to "redis://:${canary}@host/0" failed`,
    `https://user:${canary}@example.com/mcp?x=1`,
    `bearer   ${canary}`,
    `GET /setup/${canary}-abcdefgh answered 404`,
  ])('removes the credential in %s', (line) => {
    const blanked = redact(line);
    expect(blanked).not.toContain(canary);
    expect(blanked).not.toContain(key.slice(8));
    expect(blanked).toContain('[redacted]');
  });

  it('leaves valid JSON', () => {
    const line = JSON.stringify({ msg: `Bearer ${canary}`, password: canary, url: `redis://:${canary}@h/0`, n: 1 });
    expect(JSON.parse(redact(line))).toMatchObject({ password: '[redacted]', url: 'redis://:[redacted]@h/0', n: 1 });
  });

  it.each([
    '{"level":"info","msg":"Slipway listens on http://127.0.0.1:3000"}',
    'PUT /connect/acme/slipway_notes answered 404',
    'https://example.com/path@tag:1',
    '{"tokens":3,"keys":["a"]}',
    'slipway_Qw3x',
  ])('does not change %s', (line) => {
    expect(redact(line)).toBe(line);
  });
});

describe('the logger', () => {
  /** The log text of these fields. */
  function written(fields: object): string {
    let text = '';
    const sink = new Writable({
      write: (chunk: Buffer, _, done) => {
        text += chunk.toString();
        done();
      },
    });
    const original = process.stdout.write;
    process.stdout.write = (chunk: string) => sink.write(chunk);
    try {
      createPino({ logLevel: 'trace', logFormat: 'json', roles: ['api'] }).info(fields);
    } finally {
      process.stdout.write = original;
    }
    return text;
  }

  it('logs type, message, code and stack of an error, and no other field', () => {
    const driver = Object.assign(new Error('duplicate key'), { code: '23505', detail: `Key (x)=(${canary})` });
    const failed = new QueryFailedError('INSERT INTO t VALUES ($1)', [canary], driver);
    const line = written({ err: failed, msg: 'x failed' });
    expect(JSON.parse(line).err).toEqual({
      type: 'QueryFailedError',
      message: 'duplicate key',
      stack: expect.stringContaining('QueryFailedError: duplicate key'),
      code: '23505',
      query: 'INSERT INTO t VALUES ($1)',
    });
    expect(line).not.toContain(canary);
    const parser = Object.assign(new Error('Expected HTTP/'), { code: 'HPE_INVALID', data: `x-secret: ${canary}` });
    expect(written({ err: parser })).not.toContain(canary);
  });

  it('removes credentials from its output', () => {
    expect(written({ msg: `Bearer ${canary}` })).toContain('Bearer [redacted]');
  });
});
