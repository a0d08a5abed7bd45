import { formBody } from './files.js';
import type { Random } from './random.js';
import { oddText } from './values.js';

/** Bytes of a connection: a request that breaks a rule of HTTP, or is cut. Whatever it names does not exist afterwards. */
export function wireBytes(random: Random, key: string, namespace: string): Buffer {
  const head = (start: string, headers: string[]) =>
    `${start}\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${key}\r\n${headers.map((line) => `${line}\r\n`).join('')}connection: close\r\n\r\n`;
  const put = `PUT /connect/${namespace}/never HTTP/1.1`;
  const body = '{"mcpUrl":"http://127.0.0.1:1/mcp"}';
  const json = 'content-type: application/json';
  switch (random.int(0, 13)) {
    case 0:
      return Buffer.from(head(put, [json, `content-length: ${body.length + 10}`]) + body);
    case 1:
      return Buffer.from(
        head(put, [json, 'transfer-encoding: chunked']) + `${(body.length + 9).toString(16)}\r\n${body}`,
      );
    case 2:
      return Buffer.from(head(put, [json, 'transfer-encoding: chunked']) + `zz\r\n${body}\r\n0\r\n\r\n`);
    case 3:
      return Buffer.from(
        head(put, [json, `content-length: ${random.pick(['-1', '1e3', '', '0x10', '99999999999999999999'])}`]) + body,
      );
    case 4:
      return Buffer.from(head(put, [json, 'content-length: 5', 'content-length: 6']) + body);
    case 5:
      return Buffer.from(head(put, [json, 'content-length: 5', 'transfer-encoding: chunked']) + `0\r\n\r\n`);
    case 6:
      return Buffer.from(head(`GET /${oddText(random)} HTTP/1.1`, []));
    case 7:
      return Buffer.from(head(`GET /namespaces HTTP/1.1`, [`x: ${'a'.repeat(random.pick([8_000, 70_000]))}`]));
    case 8:
      return Buffer.from(head(`${random.pick(['FOO', 'CONNECT', 'TRACE', 'get'])} /namespaces HTTP/1.1`, []));
    case 9:
      return Buffer.from(head(`GET /namespaces HTTP/${random.pick(['0.9', '1.0', '2.0', '9'])}`, []));
    case 10: {
      const form = formBody([{ name: 'archive', content: random.bytes(1_000), filename: 'a.zip' }]);
      const start = head(`PUT /skills/${namespace}/never/upload HTTP/1.1`, [
        'content-type: multipart/form-data; boundary=fuzz-boundary',
        `content-length: ${form.length}`,
      ]);
      return Buffer.concat([Buffer.from(start), form.subarray(0, random.int(0, form.length - 1))]);
    }
    case 11:
      return Buffer.from(
        head(`GET http://127.0.0.1/namespaces HTTP/1.1`, [
          'expect: 100-continue',
          `x-request-id: ${oddText(random).replace(/[^\x20-\x7e]/g, '')}`,
        ]),
      );
    case 12:
      return Buffer.from(
        head(`GET /connect/${namespace}/local HTTP/1.1`, [
          'upgrade: websocket',
          `sec-websocket-version: ${random.pick(['13', '8', 'x'])}`,
          `sec-websocket-key: ${random.pick(['dGhlIHNhbXBsZSBub25jZQ==', 'x', ''])}`,
        ]).replace('connection: close', 'connection: upgrade'),
      );
    default:
      return random.bytes(random.int(1, 400));
  }
}
