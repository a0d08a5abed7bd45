import { beforeAll, describe, expect } from '@jest/globals';
import fc from 'fast-check';
import { testAccount, testApp, uniqueName } from '../support/app.js';
import { createConnection, createNamespace, createServer } from '../support/factories.js';
import { rawRequest, type RawAnswer } from '../support/mcp/raw-request.js';
import { hostileSpellings, qualifiedNameSpellings } from '../support/documentation/spellings.js';
import { startUpstream, type Upstream } from '../support/upstream/upstream.js';
import { longVerifies, verifies } from '../support/verifies.js';
import { randomRuns } from '../support/random-runs.js';

/** Stands in everything of the victim's that only they may read. */
const SECRET = 'only-for-the-victim';

/** Enough to meet every pair of oddities many times over the runs of a week; each run tries every method. */
const RUNS = randomRuns(400);

const app = testApp();
let upstream: Upstream;
const victim = testAccount(app);
const attacker = testAccount(app);
/** The victim's namespace, the attacker's, and one of the same length that nobody owns. */
let theirs: string;
let mine: string;
let ghost: string;

beforeAll(async () => {
  upstream = await startUpstream();
  [theirs, mine, ghost] = [uniqueName('spell'), uniqueName('spell'), uniqueName('spell')];
  for (const [account, namespace] of [
    [victim, theirs],
    [attacker, mine],
  ] as const) {
    await createNamespace(app, account, namespace);
    await createServer(app, account, { namespace, server: 'weather' });
    await createServer(app, account, { namespace, server: '' });
  }
  const body = { mcpUrl: upstream.url, name: SECRET, metadata: { secret: SECRET } };
  await createConnection(app, victim, body, { namespace: theirs, connectionId: 'conn' });
});

/** Everything the victim has, as the database has it, without the times of good round trips, which are noted late. */
async function possessions(): Promise<unknown> {
  return app.database.query(
    `SELECT n.id, n.account_id,
            (SELECT jsonb_agg(to_jsonb(s) ORDER BY s.name) FROM servers s WHERE s.namespace_id = n.id) AS servers,
            (SELECT jsonb_agg(to_jsonb(c) - 'last_ok_at' ORDER BY c.connection_id) FROM connections c WHERE c.namespace_id = n.id) AS connections
       FROM namespaces n WHERE n.name = $1`,
    [theirs],
  );
}

const requests: [string, object?][] = [
  ['GET'],
  ['PUT', { name: 'stolen', displayName: 'stolen' }],
  ['POST', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'echo', arguments: { message: 'stolen' } } }],
  ['DELETE'],
];

/** The answers to the attacker, in the order of {@link requests}. */
async function attack(target: string): Promise<(RawAnswer & { method: string })[]> {
  const answers = [];
  for (const [method, body] of requests) {
    answers.push({ method, ...(await rawRequest(app, attacker, method, target, body)) });
  }
  return answers;
}

/** The paths below a namespace that only its owner may use, and those that only its owner may write to. */
const shapes = (namespace: string): string[][] => [
  ['connect', namespace],
  ['connect', namespace, 'conn'],
  ['connect', namespace, '.tools'],
  ['connect', namespace, 'conn', 'mcp'],
  ['connect', namespace, 'conn', '.tools', 'echo'],
  [namespace],
  [namespace, 'conn'],
  [namespace, 'conn', 'mcp'],
  [namespace, 'conn', '.tools', 'echo'],
  ['servers', namespace],
  ['servers', namespace, 'weather'],
  ['namespaces', namespace],
  ['namespaces', namespace, 'servers', 'weather'],
];

const hostile = fc.constantFrom(...shapes('NAMESPACE').keys()).chain((index) =>
  // Spelled with the real name, so that its own letters are encoded too.
  fc.tuple(fc.constant(index), hostileSpellings(shapes(theirs)[index])),
);

describe('with the key of another account', () => {
  verifies(
    'path:no-bypass',
    'no spelling of a path reads or changes what a tenant owns, or fails',
    async () => {
      const before = await possessions();
      const seen = upstream.requests.length;
      await fc.assert(
        fc.asyncProperty(hostile, async ([, target]) => {
          for (const { method, status, text } of await attack(target)) {
            expect([method, target, status]).toEqual([method, target, expect.any(Number)]);
            if (status >= 500) throw new Error(`${method} ${target} answered ${status} ${text}`);
            if (text.includes(SECRET)) throw new Error(`${method} ${target} told ${text}`);
            // Reading a server is everybody's right; everything else was aimed at the victim and must not succeed.
            if (status < 300 && !(method === 'GET' && text.includes('qualifiedName'))) {
              throw new Error(`${method} ${target} answered ${status} ${text}`);
            }
          }
          expect(await possessions()).toEqual(before);
          expect(upstream.requests.length).toBe(seen);
        }),
        { numRuns: RUNS },
      );
    },
    120_000,
  );

  longVerifies(
    'path:no-bypass',
    'no path through an own namespace does either',
    async () => {
      const before = await possessions();
      const seen = upstream.requests.length;
      const detours = fc
        .tuple(
          fc.constantFrom('/connect/', '/', '/servers/', '/servers/@', '/namespaces/'),
          fc.constantFrom(mine, `${mine}/weather`, `${mine}%2Fweather`, `${mine}/conn`, `${mine}%2F..`),
          hostile,
        )
        .map(([head, own, [, target]]) => `${head}${own}${target.replace(/^https?:\/\/h/i, '')}`);
      await fc.assert(
        fc.asyncProperty(detours, async (target) => {
          for (const { method, status, text } of await attack(target)) {
            if (status >= 500) throw new Error(`${method} ${target} answered ${status} ${text}`);
            if (text.includes(SECRET)) throw new Error(`${method} ${target} told ${text}`);
          }
          expect(await possessions()).toEqual(before);
          expect(upstream.requests.filter(({ raw }) => raw.includes('stolen'))).toEqual([]);
        }),
        { numRuns: RUNS },
      );
      expect(upstream.requests.length).toBe(seen);
    },
    120_000,
  );

  longVerifies(
    ['path:no-bypass', 'server:delete:foreign'],
    'no spelling distinguishes a foreign connection, or the deletion of a foreign server, from a missing one',
    async () => {
      await fc.assert(
        fc.asyncProperty(hostile, async ([index, target]) => {
          const isServer = shapes('')[index]?.[0] === 'servers';
          // Claiming a name tells whether it is free: that is what names are for.
          if (shapes('')[index]?.[0] === 'namespaces') return;
          const asGhost = respelled(target);
          if (asGhost === null) return;
          const [real, imagined] = [await attack(target), await attack(asGhost)];
          for (const [i, answer] of real.entries()) {
            // Reading and creating servers has answers of its own for what exists.
            if (isServer && answer.method !== 'DELETE') continue;
            expect([target, withoutEcho(answer)]).toEqual([target, withoutEcho(imagined[i])]);
          }
        }),
        { numRuns: RUNS },
      );
    },
    120_000,
  );

  longVerifies(
    ['name:encoded-slash', 'path:leading-at', 'path:unencoded-slash', 'path:trailing-slash'],
    'every published spelling reads a tenant’s server and deletes none',
    async () => {
      const before = await possessions();
      const spelled = fc
        .constantFrom('weather', '')
        .chain((server) => fc.tuple(fc.constant(server), qualifiedNameSpellings(theirs, server)));
      await fc.assert(
        fc.asyncProperty(spelled, async ([server, spelling]) => {
          const qualifiedName = server === '' ? theirs : `${theirs}/${server}`;
          const read = await rawRequest(app, attacker, 'GET', `/servers/${spelling}`);
          expect([spelling, read.status, JSON.parse(read.text).qualifiedName]).toEqual([spelling, 200, qualifiedName]);
          const deleted = await rawRequest(app, attacker, 'DELETE', `/servers/${spelling}`);
          expect([spelling, deleted.status]).toEqual([spelling, 404]);
          const put = await rawRequest(app, attacker, 'PUT', `/servers/${spelling}`, { displayName: 'stolen' });
          expect([spelling, put.status]).toEqual([spelling, 403]);
        }),
        { numRuns: 100 },
      );
      expect(await possessions()).toEqual(before);
    },
    120_000,
  );
});

/** Errors of the router repeat the path. */
function withoutEcho(answer: RawAnswer): RawAnswer {
  return { ...answer, text: answer.text.replace(/Nothing answers .* GET|Failed to decode param '.*'/, '') };
}

/** The same spelling of the ghost's name; null when this spelling cannot be told apart from the rest of the target. */
function respelled(target: string): string | null {
  const char = (text: string) => `(?:${text}|${text.toUpperCase()}|%(?:25)?${text.charCodeAt(0).toString(16)})`;
  const spelled = new RegExp(Array.from(theirs, char).join(''), 'i').exec(target);
  if (!spelled) return null;
  const pieces = spelled[0].match(/%25[0-9a-f]{2}|%[0-9a-f]{2}|./gi) as string[];
  const isUpper = pieces.some((piece) => /^[A-Z]$/.test(piece));
  const again = pieces.map((piece, i) => {
    const letter = ghost[i];
    const hex = letter.charCodeAt(0).toString(16);
    if (piece.startsWith('%25')) return `%25${hex}`;
    if (piece.startsWith('%')) return `%${hex}`;
    return isUpper ? letter.toUpperCase() : letter;
  });
  return target.slice(0, spelled.index) + again.join('') + target.slice(spelled.index + spelled[0].length);
}
