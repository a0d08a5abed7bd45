import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import fc from 'fast-check';
import { InvalidInputError } from '../../src/platform/errors/domain-error.js';
import { decodeCursor, encodeCursor } from '../../src/platform/http/cursor.js';
import { startApp, type TestAccount, type TestApp } from '../support/app.js';
import { seedConnections } from '../support/database/connection-rows.js';
import { createNamespace } from '../support/factories.js';
import { longVerifies, verifies } from '../support/verifies.js';
import { randomRuns } from '../support/random-runs.js';

/** The largest number a row can have. */
const SEQ_MAX = 2n ** 63n - 1n;

const sequences = fc.oneof(
  fc.bigInt({ min: 1n, max: SEQ_MAX }),
  fc.bigInt({ min: 1n, max: 2000n }),
  fc.constantFrom(1n, 2n ** 31n, 2n ** 53n, 2n ** 53n + 1n, SEQ_MAX),
);

function isRefused(cursor: string): boolean {
  try {
    decodeCursor(cursor);
    return false;
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidInputError);
    return true;
  }
}

describe('a cursor', () => {
  verifies('connection:list:cursor', 'decodes to its row, needs no URL encoding, and differs for every row', () => {
    fc.assert(
      fc.property(sequences, sequences, (first, second) => {
        const cursor = encodeCursor(String(first));
        expect(decodeCursor(cursor)).toBe(String(first));
        expect(encodeURIComponent(cursor)).toBe(cursor);
        expect(cursor === encodeCursor(String(second))).toBe(first === second);
      }),
      { numRuns: randomRuns(2_000) },
    );
  });

  longVerifies('connection:list:cursor-invalid', 'is refused unless it equals one that the service issues', () => {
    const encodings = ['base64url', 'base64', 'hex', 'latin1'] as const;
    const inner = fc.oneof(
      fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }).map(String),
      fc.double().map(String),
      fc.string(),
      fc.constantFrom('0', '00', '01', '-1', '+1', '1 ', ' 1', '1\n', '1.0', '1e3', '0x1', '１', String(SEQ_MAX + 1n)),
    );
    const forged = fc
      .tuple(fc.constantFrom('s', '', 'S', 't', 'ss', ' s'), inner, fc.constantFrom(...encodings))
      .map(([mark, text, encoding]) => Buffer.from(mark + text).toString(encoding));
    const made = sequences.map((seq) => encodeCursor(String(seq)));
    const damaged = fc
      .tuple(made, fc.nat(), fc.nat({ max: 2 }), fc.string({ maxLength: 2 }))
      .map(([cursor, at, drop, add]) => {
        const index = at % (cursor.length + 1);
        return cursor.slice(0, index) + add + cursor.slice(index + drop);
      });
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.string({ unit: 'binary' }), forged, damaged, made), (cursor) => {
        if (isRefused(cursor)) return;
        const seq = decodeCursor(cursor);
        expect(seq).toMatch(/^[1-9]\d*$/);
        expect(BigInt(seq) <= SEQ_MAX).toBe(true);
        expect(encodeCursor(seq)).toBe(cursor);
      }),
      { numRuns: randomRuns(10_000) },
    );
    // Cut by any number of characters, and a cursor of another list.
    const whole = encodeCursor('171', 'one');
    for (let cut = 1; cut < whole.length; cut += 1) {
      expect(() => decodeCursor(whole.slice(0, -cut), 'one')).toThrow(InvalidInputError);
    }
    expect(() => decodeCursor(whole, 'other')).toThrow(InvalidInputError);
    expect(Buffer.from(whole, 'base64url').toString('latin1')).not.toContain('171');
    expect(isRefused(encodeCursor('1'))).toBe(false);
    for (const seq of ['0', '-1', '01', '', '1.5', String(SEQ_MAX + 1n)])
      expect(isRefused(encodeCursor(seq))).toBe(true);
  });
});

describe('a walk along cursors', () => {
  let app: TestApp;
  let owner: TestAccount;
  beforeAll(async () => {
    app = await startApp();
    owner = await app.account();
  });
  afterAll(() => app.close());

  /** Changes between two pages: the number of added rows, and the places of the deleted ones. */
  const between = fc.record({
    limit: fc.integer({ min: 1, max: 7 }),
    added: fc.nat({ max: 3 }),
    deleted: fc.array(fc.nat({ max: 40 }), { maxLength: 4 }),
  });

  longVerifies(
    ['connection:list:cursor-stable', 'connection:list:cursor', 'connection:list:order'],
    'returns every row that existed throughout exactly once, newest first, with concurrent inserts and deletes',
    async () => {
      const namespace = await createNamespace(app, owner);
      const list = async (query: string) => {
        const { body } = await app.as(owner).get(`/connect/${namespace}?${query}`).expect(200);
        return body as { connections: { connectionId: string }[]; nextCursor: string | null };
      };
      const walk = async (size: number, steps: { limit: number; added: number; deleted: number[] }[]) => {
        await app.database.query('DELETE FROM connections');
        const there = await seedConnections(
          app,
          namespace,
          Array.from({ length: size }, () => ({})),
        );
        const gone = new Set<string>();
        const shown: string[] = [];
        let cursor: string | null = null;
        for (let i = 0; ; i++) {
          const { limit, added, deleted } = steps[i % steps.length] ?? { limit: 1, added: 0, deleted: [] };
          const page = await list(`limit=${limit}${cursor === null ? '' : `&cursor=${cursor}`}`);
          const ids = page.connections.map(({ connectionId }) => connectionId);
          // Nothing shown was already gone.
          expect(ids.filter((id) => gone.has(id))).toEqual([]);
          shown.push(...ids);
          cursor = page.nextCursor;
          if (cursor === null) break;
          expect(ids).toHaveLength(limit);
          await seedConnections(
            app,
            namespace,
            Array.from({ length: added }, () => ({})),
          );
          const doomed = deleted.flatMap((index) => there[index] ?? []);
          await app.database.query('DELETE FROM connections WHERE connection_id = ANY($1)', [doomed]);
          for (const id of doomed) gone.add(id);
        }
        const survivors = there.toReversed().filter((id) => !gone.has(id));
        expect(new Set(shown).size).toBe(shown.length);
        expect(shown.filter((id) => !gone.has(id))).toEqual(survivors);
        // In the order of creation, and no row that came after the walk began.
        expect(shown).toEqual(there.toReversed().filter((id) => shown.includes(id)));
      };
      await fc.assert(fc.asyncProperty(fc.nat({ max: 25 }), fc.array(between, { minLength: 1, maxLength: 6 }), walk), {
        numRuns: randomRuns(60),
      });
    },
  );
});
