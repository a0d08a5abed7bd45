import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { SseParser } from './sse-parser.js';
import { randomRuns } from '../../../../test/support/random-runs.js';

/** Events that the parser emits for a stream split into these chunks. */
function read(...chunks: (Buffer | string)[]): string[] {
  const heard: string[] = [];
  const parser = new SseParser((data) => heard.push(data));
  for (const chunk of chunks) parser.push(typeof chunk === 'string' ? Buffer.from(chunk) : chunk);
  return heard;
}

/** One line of event data: any text without line breaks and without lone surrogates, which UTF-8 cannot encode. */
const line = fc.string({ unit: 'binary', maxLength: 12 }).map((text) => text.replaceAll(/[\r\n]/g, ''));

const field = fc.oneof(
  fc.record({ kind: fc.constant('message' as const), lines: fc.array(line, { minLength: 1, maxLength: 3 }) }),
  fc.record({ kind: fc.constant('noise' as const), text: fc.constantFrom(': ping', 'id: 7', 'retry: 10', 'odd: x') }),
  fc.record({ kind: fc.constant('other' as const), lines: fc.array(line, { minLength: 1, maxLength: 2 }) }),
);

describe('SseParser', () => {
  it('reads the same messages however the bytes are split and the lines end', () => {
    fc.assert(
      fc.property(
        fc.array(field, { maxLength: 6 }),
        fc.constantFrom('\n', '\r\n'),
        fc.boolean(),
        fc.array(fc.nat({ max: 200 }), { maxLength: 12 }),
        (fields, newline, isNamed, cuts) => {
          const expected: string[] = [];
          let stream = '';
          for (const one of fields) {
            if (one.kind === 'noise') {
              stream += `${one.text}${newline}${newline}`;
              continue;
            }
            const event = one.kind === 'other' ? 'ping' : isNamed ? 'message' : null;
            if (event !== null) stream += `event: ${event}${newline}`;
            stream += one.lines.map((text) => `data: ${text}${newline}`).join('') + newline;
            if (one.kind === 'message' && one.lines.join('\n') !== '') expected.push(one.lines.join('\n'));
          }
          const bytes = Buffer.from(stream);
          const at = [...new Set(cuts.map((cut) => Math.min(cut, bytes.length)))].sort((a, b) => a - b);
          const chunks = [0, ...at].map((from, i) => bytes.subarray(from, at[i] ?? bytes.length));
          expect(read(...chunks)).toEqual(expected);
          expect(read(...[...bytes].map((byte) => Buffer.from([byte])))).toEqual(expected);
        },
      ),
      { numRuns: randomRuns(500) },
    );
  });

  it('refuses an event above the size limit, however it is divided, and everything after it', () => {
    const limit = 1_000;
    const take = (...chunks: string[]) => {
      const parser = new SseParser(() => undefined, undefined, limit);
      return chunks.map((chunk) => parser.push(Buffer.from(chunk)));
    };
    const half = 'x'.repeat(600);
    expect(take(`data: ${half}\n\n`, `data: ${half}\n\n`)).toEqual([true, true]);
    expect(take(`data: ${half}`, half, '\n\n')).toEqual([true, false, false]);
    expect(take(`data: ${half}\n`, `data: ${half}\n`, '\n')).toEqual([true, false, false]);
    expect(take('data:\n'.repeat(500), 'data:\n'.repeat(600))).toEqual([true, false]);
  });

  it('keeps the id of the last complete event, also of a keep-alive, if it is a valid header value', () => {
    const parser = new SseParser(() => undefined);
    const ids = [
      'id: a\ndata: x\n\n',
      'id: b\n',
      'data:\n\n',
      'id: \u0001\ndata: x\n\n',
      'data: y\n\nid: c\ndata: z',
    ].map((text) => {
      parser.push(Buffer.from(text));
      return parser.lastEventId;
    });
    expect(ids).toEqual(['a', 'a', 'b', 'b', 'b']);
  });

  it('keeps the retry time of the server and reports events of other names', () => {
    const others: string[][] = [];
    const parser = new SseParser(
      () => undefined,
      (...other) => others.push(other),
    );
    parser.push(Buffer.from('retry: 250\nretry: soon\nevent: endpoint\ndata: /messages\n\n'));
    expect([parser.retryMs, others]).toEqual([250, [['endpoint', '/messages']]]);
  });
});
