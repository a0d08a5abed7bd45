import fc, { type Arbitrary } from 'fast-check';
import { bytes, cut } from './draw.js';
import { FORM_TYPE, formBody } from './files.js';
import { oddText } from './values.js';

/** Bytes of a connection: a request that breaks a rule of HTTP, or is cut. Whatever it names does not exist afterwards. */
export function wireBytes(key: string, namespace: string): Arbitrary<Buffer> {
  const request = (start: string, headers: string[] = [], body: string | Buffer = '', connection = 'close') =>
    Buffer.concat(
      [
        `${start}\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${key}\r\n`,
        ...headers.map((line) => `${line}\r\n`),
        `connection: ${connection}\r\n\r\n`,
        body,
      ].map((chunk) => Buffer.from(chunk)),
    );
  const body = '{"mcpUrl":"http://127.0.0.1:1/mcp"}';
  const length = `content-length: ${body.length + 10}`;
  const chunked = 'transfer-encoding: chunked';
  const size = (body.length + 9).toString(16);
  const form = formBody([{ name: 'archive', content: Buffer.alloc(1_000, 7), filename: 'a.zip' }]);
  /** Headers of length, and the body after them. */
  const bodies: [string[], string][] = [
    [[length], body],
    [[chunked], `${size}\r\n${body}`],
    [[chunked], `zz\r\n${body}\r\n0\r\n\r\n`],
    [['content-length: 5', 'content-length: 6'], body],
    [['content-length: 5', chunked], '0\r\n\r\n'],
    ...['-1', '1e3', '', '0x10', '9'.repeat(20)].map((odd): [string[], string] => [[`content-length: ${odd}`], body]),
  ];
  const upgrade = fc.tuple(fc.constantFrom('13', '8', 'x'), fc.constantFrom('dGhlIHNhbXBsZSBub25jZQ==', 'x', ''));
  return fc.oneof(
    {
      weight: 5,
      arbitrary: fc
        .constantFrom(...bodies)
        .map(([headers, sent]) =>
          request(`PUT /connect/${namespace}/never HTTP/1.1`, ['content-type: application/json', ...headers], sent),
        ),
    },
    oddText.map((text) => request(`GET /${text} HTTP/1.1`)),
    fc.constantFrom(8_000, 70_000).map((n) => request('GET /namespaces HTTP/1.1', [`x: ${'a'.repeat(n)}`])),
    fc.constantFrom('FOO', 'CONNECT', 'TRACE', 'get').map((method) => request(`${method} /namespaces HTTP/1.1`)),
    fc.constantFrom('0.9', '1.0', '2.0', '9').map((version) => request(`GET /namespaces HTTP/${version}`)),
    cut(form).map((start) =>
      request(
        `PUT /skills/${namespace}/never/upload HTTP/1.1`,
        [`content-type: ${FORM_TYPE}`, `content-length: ${form.length}`],
        start.subarray(0, form.length - 1),
      ),
    ),
    oddText.map((text) =>
      request('GET http://127.0.0.1/namespaces HTTP/1.1', [
        'expect: 100-continue',
        `x-request-id: ${text.replace(/[^\x20-\x7e]/g, '')}`,
      ]),
    ),
    upgrade.map(([version, socketKey]) =>
      request(
        `GET /connect/${namespace}/local HTTP/1.1`,
        ['upgrade: websocket', `sec-websocket-version: ${version}`, `sec-websocket-key: ${socketKey}`],
        '',
        'upgrade',
      ),
    ),
    bytes(400),
  );
}
