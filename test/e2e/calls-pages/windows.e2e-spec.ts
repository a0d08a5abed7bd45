import { beforeAll, describe, expect, it } from '@jest/globals';
import { testAccount, testApp } from '../../support/app.js';
import { createConnection } from '../../support/factories.js';
import { signedInBrowser } from '../../support/people/browser-session.js';

/** More than a window, and than a window of targets that are few. */
const ROWS = 12_000;
const COPIES = 60;

const app = testApp();
const owner = testAccount(app);
let namespace: string;

/** Requests of the last hours, one in two of the busy connection. The oldest of each kind is of the tool `rare`. */
beforeAll(async () => {
  const made = await createConnection(app, owner, { mcpUrl: 'http://nowhere.invalid/mcp' }, { connectionId: 'busy' });
  ({ namespace } = made);
  await app.database.query(
    `INSERT INTO connections OVERRIDING SYSTEM VALUE
     SELECT (jsonb_populate_record(c, jsonb_build_object('id', gen_random_uuid(), 'connection_id', 'copy-' || i,
              'seq', (SELECT max(seq) FROM connections) + i))).*
       FROM connections c JOIN namespaces n ON n.id = c.namespace_id, generate_series(1, ${COPIES}) i WHERE n.name = $1`,
    [namespace],
  );
  await app.database.query(
    `WITH c AS (SELECT c.id, row_number() OVER (ORDER BY c.connection_id = 'busy' DESC, c.id) - 1 AS n
                  FROM connections c JOIN namespaces n ON n.id = c.namespace_id WHERE n.name = $1),
          r AS (SELECT i, floor(extract(epoch FROM now()) * 1000)::bigint - 1000 - i AS ms FROM generate_series(1, ${2 * ROWS}) i)
     INSERT INTO invocations (id, day, at, connection_id, jobs, call)
     SELECT (lpad(to_hex(ms), 12, '0') || '7' || substr(md5(i::text), 1, 3) || '8' || substr(md5(i::text), 4, 15))::uuid,
            (to_timestamp(ms / 1000.0) AT TIME ZONE 'UTC')::date, to_timestamp(ms / 1000.0), c.id, '{}',
            jsonb_build_object('at', ms, 'status', 200, 'outcome', 'ok', 'rpcMethod', 'tools/call',
              'toolName', CASE WHEN i > ${2 * ROWS - 2} THEN 'rare' ELSE 'common' END)
       FROM r JOIN c ON c.n = CASE WHEN i % 2 = 0 THEN 0 ELSE 1 + i % ${COPIES} END`,
    [namespace],
  );
});

/** The calls of all pages of `GET /calls`. */
async function listed(query: string): Promise<string[]> {
  const ids: string[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const { status, body } = await app.as(owner).get(`/calls?limit=100&${query}${cursor && `&cursor=${cursor}`}`);
    expect(status).toBe(200);
    ids.push(...(body as { calls: { id: string }[] }).calls.map(({ id }) => id));
    cursor = (body as { nextCursor: string | null }).nextCursor;
  }
  return ids;
}

const stored = async (condition: string, limit: number) =>
  (
    await app.database.query<{ id: string }[]>(
      `SELECT i.id FROM invocations i JOIN connections c ON c.id = i.connection_id JOIN namespaces n ON n.id = c.namespace_id
        WHERE n.name = $1 AND ${condition} ORDER BY i.id DESC LIMIT ${limit}`,
      [namespace],
    )
  ).map(({ id }) => id);

describe('calls that are more than a window', () => {
  it.each([
    ['of many targets', '', 'true', 2],
    ['of one target', '&target=NAMESPACE/busy', `c.connection_id = 'busy'`, 1],
  ])('are read newest first without a gap, and filtered to the oldest, %s', async (_, filter, condition, rare) => {
    const query = filter.replace('NAMESPACE', namespace);
    const found = await listed(`tool=rare${query}`);
    expect(found).toEqual(await stored(`i.call ->> 'toolName' = 'rare' AND ${condition}`, 10));
    expect(found).toHaveLength(rare);
    const csv = await (await signedInBrowser(app, owner)).get(`/ui/calls/csv?${query}`);
    const ids = csv.text.match(/[0-9a-f]{8}-[0-9a-f-]{27}(?="\r)/g);
    expect(ids).toEqual(await stored(condition, 10_000));
  });

  it('are counted in their plot, all of them where the table is small', async () => {
    const { text } = await (await signedInBrowser(app, owner)).get(`/ui/calls?target=${namespace}/busy`);
    expect(text).toContain(`OK ${ROWS}, Denied or canceled 0`);
  });
});
