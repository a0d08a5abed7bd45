import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { headerValue, parseMessage, replyTo, withEnvelope } from './messages.js';
import { randomRuns } from '../../../test/support/random-runs.js';

const version = '2026-07-28';
const own = {
  'io.modelcontextprotocol/protocolVersion': version,
  'io.modelcontextprotocol/clientCapabilities': {},
  'io.modelcontextprotocol/clientInfo': { name: 'slipway', version: expect.any(String) },
};

function enveloped(params: string | undefined): unknown {
  return JSON.parse(withEnvelope(params));
}

describe('withEnvelope', () => {
  it('creates missing params', () => {
    for (const params of [undefined, '{}', ' { } ']) expect(enveloped(params)).toEqual({ _meta: own });
  });

  it('keeps every other member and the content of _meta', () => {
    const json = fc.jsonValue({ maxDepth: 3 }).map((value) => JSON.stringify(value));
    const plain = fc.dictionary(
      fc.string().filter((name) => name !== '_meta' && name !== '__proto__'),
      json,
      { maxKeys: 4 },
    );
    const blank = fc.constantFrom('', ' ', '\n\t');
    const write = (members: Record<string, string>, gap: string) =>
      `${gap}{${gap}${Object.entries(members)
        .map(([name, value]) => `${JSON.stringify(name)}${gap}:${gap}${value}`)
        .join(`${gap},${gap}`)}${gap}}${gap}`;
    fc.assert(
      fc.property(plain, fc.option(plain, { nil: undefined }), blank, (members, meta, gap) => {
        const params = write({ ...members, ...(meta ? { _meta: write(meta, gap) } : {}) }, gap);
        const given = JSON.parse(params) as { _meta?: object };
        expect(enveloped(params)).toEqual({ ...given, _meta: { ...own, ...given._meta } });
      }),
    );
  });

  it('keeps numbers, order and escapes', () => {
    const params = '{ "b":9007199254740993, "_meta": { "x":1.10 }, "a":"\\u0041" }';
    expect(withEnvelope(params)).toMatch(/^\{ "b":9007199254740993, "_meta": ?\{.*"x":1\.10 ?\}, "a":"\\u0041" \}$/);
  });

  // An invalid `_meta` causes an error or valid JSON; text of other members is never taken for it.
  it.each(['5', 'null', '[]', '"text"', '"\\\\"'])('is not confused by _meta %s', (meta) => {
    const params = `{"_meta":${meta},"cursor":"c"}`;
    let result: unknown;
    try {
      result = enveloped(params);
    } catch (error) {
      expect((error as Error).name).not.toMatch(/SyntaxError|TypeError/);
      return;
    }
    expect(result).toMatchObject({ cursor: 'c', _meta: own });
  });
});

describe('headerValue', () => {
  it('is plain where HTTP allows it, and base64 of UTF-8 otherwise', () => {
    expect(headerValue('repo.search')).toBe('repo.search');
    expect(headerValue('a b\tc')).toBe('a b\tc');
    for (const [text, coded] of [
      ['', ''],
      [' a', 'IGE='],
      ['a ', 'YSA='],
      ['ü', 'w7w='],
      ['a\nb', 'YQpi'],
      ['\u007f', 'fw=='],
      ['=?base64?YQ==?=', 'PT9iYXNlNjQ/WVE9PT89'],
    ]) {
      expect(headerValue(text)).toBe(`=?base64?${coded}?=`);
    }
  });

  it('can be read back and is a valid header value for any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const value = headerValue(text);
        expect(value).toMatch(/^[\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?$/);
        const coded = /^=\?base64\?(.*)\?=$/.exec(value)?.[1];
        expect(coded === undefined ? value : Buffer.from(coded, 'base64').toString('utf8')).toBe(text);
      }),
      { numRuns: randomRuns(2_000) },
    );
  });
});

describe('replyTo', () => {
  const reply = (text: string) => replyTo(7, text, parseMessage(text) ?? {}, 'legacy');

  it('accepts only the result with its id', () => {
    expect(reply('{"id":7,"result":null}')).toMatchObject({ id: [6, 7], result: [17, 21], error: null });
    for (const text of ['{"id":8,"result":{}}', '{"id":null,"result":{}}', '{"result":{}}', '{"id":7}', '{}']) {
      expect(reply(text)).toBeNull();
    }
  });

  it('accepts an error with its id, with null and without an id', () => {
    const error = { code: -32000, message: 'No', data: [1] };
    for (const id of ['"id":7,', '"id":null,', '']) {
      expect(reply(`{${id}"error":${JSON.stringify(error)}}`)).toMatchObject({ result: null, error });
    }
    expect(reply('{"id":8,"error":{"code":1,"message":""}}')).toBeNull();
  });

  it('adds a message to an error without one', () => {
    for (const error of ['{"code":1}', '{"code":1,"message":5}']) {
      expect(reply(`{"id":7,"error":${error}}`)?.error).toEqual({ code: 1, message: expect.stringMatching(/\w/) });
    }
  });

  it.each(['null', '"forbidden"', '[]', '{}', '{"code":"1","message":"No"}'])(
    'accepts %s as an error only with the id of the request',
    (error) => {
      expect(reply(`{"error":${error}}`)).toBeNull();
      expect(reply(`{"id":8,"error":${error}}`)).toBeNull();
      const shown = { code: expect.any(Number), message: expect.any(String) };
      expect(reply(`{"id":7,"error":${error}}`)?.error).toEqual(error === 'null' ? undefined : shown);
    },
  );

  it('does not accept a request as a reply', () => {
    expect(reply('{"id":7,"method":"ping","result":{}}')).toBeNull();
  });
});
