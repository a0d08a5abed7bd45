import fc, { type Arbitrary } from 'fast-check';
import { bytes, cut } from './draw.js';
import { FORM_TYPE, formBytes } from '../support/documentation/raw-form.js';
import { oddText } from './values.js';

const FORM = formBytes([{ name: 'archive', content: Buffer.alloc(1_000, 7), filename: 'a.zip' }]);
const BODY = '{"mcpUrl":"http://127.0.0.1:1/mcp"}';
const LONGER = BODY.length + 10;
const chunked = 'transfer-encoding: chunked';
const length = (value: number | string) => `content-length: ${value}`;
/** Headers of length that a body does not keep, with the body. */
const BODIES: [string[], string][] = [
  ...[-1, '1e3', '', '0x10', '9'.repeat(20), LONGER].map((odd): [string[], string] => [[length(odd)], BODY]),
  [[chunked], `${LONGER.toString(16)}\r\n${BODY}`],
  [[chunked], `zz\r\n${BODY}\r\n0\r\n\r\n`],
  [[length(5), length(6)], BODY],
  [[length(5), chunked], '0\r\n\r\n'],
];
const SOCKET_KEY = 'dGhlIHNhbXBsZSBub25jZQ==';

/** Bytes of a connection: a request that breaks a rule of HTTP, or is cut. Whatever it names does not exist afterwards. */
export function wireBytes(key: string, namespace: string): Arbitrary<Buffer> {
  const request = (start: string, headers: string[] = ['connection: close'], body: string | Buffer = '') => {
    const lines = [start, 'host: 127.0.0.1', `authorization: Bearer ${key}`, ...headers, '\r\n'];
    return Buffer.concat([Buffer.from(lines.join('\r\n')), Buffer.from(body)]);
  };
  const put = (path: string, headers: string[], body: string | Buffer) =>
    request(`PUT ${path}/${namespace}/never HTTP/1.1`, ['connection: close', ...headers], body);
  const upgrade = fc.tuple(fc.constantFrom('13', '8', 'x'), fc.constantFrom(SOCKET_KEY, 'x', ''));
  return fc.oneof(
    ...BODIES.map(([headers, body]) =>
      fc.constant(put('/connect', ['content-type: application/json', ...headers], body)),
    ),
    ...['FOO', 'TRACE', 'get'].map((method) => fc.constant(request(`${method} /namespaces HTTP/1.1`))),
    ...['0.9', '1.0', '2.0', '9'].map((version) => fc.constant(request(`GET /namespaces HTTP/${version}`))),
    fc.constant(request('CONNECT /namespaces HTTP/1.1')),
    fc.constantFrom(8_000, 70_000).map((size) => request('GET /namespaces HTTP/1.1', [`x: ${'a'.repeat(size)}`])),
    cut(FORM.subarray(0, -1)).map((start) =>
      put('/skills', [`content-type: ${FORM_TYPE}`, length(FORM.length)], start),
    ),
    upgrade.map(([version, socketKey]) => {
      const headers = [`sec-websocket-version: ${version}`, `sec-websocket-key: ${socketKey}`];
      return request(`GET /connect/${namespace}/local HTTP/1.1`, [
        'upgrade: websocket',
        'connection: upgrade',
        ...headers,
      ]);
    }),
    ...[1, 2, 3].flatMap(() => [
      oddText.map((text) => request(`GET /${text} HTTP/1.1`)),
      oddText.map((text) =>
        request('GET http://127.0.0.1/ HTTP/1.1', ['expect: 100-continue', `x-request-id: ${text}`]),
      ),
      bytes(400),
    ]),
  );
}
