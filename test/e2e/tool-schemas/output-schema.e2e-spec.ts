import { describe, expect } from '@jest/globals';
import { z } from 'zod';
import type { ToolOutputSchemaDto } from '../../../src/modules/tool-schemas/tool-schema.dto.js';
import { ToolOutputsService } from '../../../src/modules/tool-schemas/tool-outputs.service.js';
import { testAccount, testApp } from '../../support/app.js';
import { createConnection, createNamespace, createServer } from '../../support/factories.js';
import { publishExternal, serverRow } from '../../support/releases/releases.js';
import { startScripted } from '../../support/special-upstreams/scripted-upstream.js';
import { verifies } from '../../support/verifies.js';
import { pasted } from '../../support/documentation/zod-expression.js';

const app = testApp();
const owner = testAccount(app);

const structured = (value: unknown) => JSON.stringify({ content: [], structuredContent: value });
const text = (value: string) => JSON.stringify({ content: [{ type: 'text', text: value }] });

/** Shows answers of a tool, as the way of calls does, and waits until they are stored. */
async function answered(name: string, tool: string, results: string[], service = app): Promise<void> {
  const { id } = await serverRow(app, name);
  const outputs = service.get(ToolOutputsService);
  for (const result of results) outputs.observe(id, tool, result);
  await outputs.settle();
}

const pathOf = (name: string, tool: string) =>
  `/servers/${encodeURIComponent(name)}/experimental/tools/${tool}/output-schema`;

async function schemaOf(name: string, tool: string): Promise<ToolOutputSchemaDto> {
  const { status, body } = await app.as(owner).get(pathOf(name, encodeURIComponent(tool)));
  expect({ status, body: body as unknown }).toMatchObject({ status: 200 });
  return body as ToolOutputSchemaDto;
}

const none = { status: 404, body: { error: 'No output samples found' } };

describe('the output schema of a tool', () => {
  verifies(
    [
      'output-schema:answer',
      'output-schema:field:qualified-name',
      'output-schema:field:tool-name',
      'output-schema:field:sample-count',
      'output-schema:field:published-name',
    ],
    'is inferred from its results, and has every field of the contract',
    async () => {
      const name = await createServer(app, owner);
      const items = [{ id: 1, at: '2026-11-20T10:15:00Z', note: null }, { id: 2.5 }];
      await answered(name, 'list', [structured({ items, total: 2 }), structured({ items: [{ id: 3, note: 'x' }] })]);
      const expression =
        'z.object({ "items": z.array(z.object({ "at": z.string().optional(), "id": z.number().optional(), ' +
        '"note": z.string().nullable().optional() })).optional(), "total": z.number().optional() })';
      expect(await schemaOf(name, 'list')).toEqual({
        qualifiedName: name,
        toolName: 'list',
        sampleCount: 2,
        validatorSchema: expression,
        zodSchema: expression,
        jsonSchema: {
          $schema: 'https://json-schema.org/draft/2020-12/schema',
          type: 'object',
          properties: {
            items: {
              type: 'array',
              items: {
                type: 'object',
                properties: { at: { type: 'string' }, id: { type: 'number' }, note: { type: ['string', 'null'] } },
              },
            },
            total: { type: 'number' },
          },
        },
        fields: [
          { path: '$', presence: 1, types: ['object'] },
          { path: '$.items', presence: 1, types: ['array'] },
          { path: '$.items[*]', presence: 1, types: ['object'] },
          { path: '$.items[*].at', presence: 0.333, types: ['string'] },
          { path: '$.items[*].id', presence: 1, types: ['number'] },
          { path: '$.items[*].note', presence: 0.667, types: ['string', 'null'] },
          { path: '$.total', presence: 0.5, types: ['number'] },
        ],
      });
    },
  );

  verifies('output-schema:successful-only', 'is not made of failures, questions and what has no text', async () => {
    const name = await createServer(app, owner);
    const failures = [
      { isError: true, content: [{ type: 'text', text: 'rate limited' }] },
      { isError: true, content: [], structuredContent: { code: 1 } },
      { resultType: 'input_required', inputRequests: {}, content: [{ type: 'text', text: 'x' }] },
      { resultType: 'task', task: {} },
      { content: [{ type: 'image', data: '', mimeType: 'image/png' }] },
      { content: null },
      [],
      null,
    ].map((result) => JSON.stringify(result));
    await answered(name, 'failing', [...failures, '', '{']);
    expect(await app.as(owner).get(pathOf(name, 'failing'))).toMatchObject(none);
    await answered(name, 'failing', [...failures, structured({ ok: true })]);
    expect(await schemaOf(name, 'failing')).toMatchObject({
      sampleCount: 1,
      zodSchema: 'z.object({ "ok": z.boolean().optional() })',
    });
  });

  verifies('output-schema:no-samples', 'is not found without samples, nor for a server that is not there', async () => {
    const name = await createServer(app, owner);
    expect(await app.as(owner).get(pathOf(name, 'never-called'))).toMatchObject(none);
    const missing = pathOf(`${name.split('/')[0]}/missing`, 'list');
    expect(await app.as(owner).get(missing)).toMatchObject({ status: 404, body: { error: 'Server not found' } });
  });
});

describe('samples', () => {
  verifies('output-schema:recent', 'count for this week and four before it, and are removed then', async () => {
    const name = await createServer(app, owner);
    await answered(name, 'old', [structured({ first: 1 })]);
    const age = (weeks: number) => app.database.query('UPDATE tool_output_shapes SET week = week - $1', [weeks]);
    await age(4);
    await answered(name, 'old', [structured({ second: 1 })]);
    expect(await schemaOf(name, 'old')).toMatchObject({
      sampleCount: 2,
      jsonSchema: { properties: { first: {}, second: {} } },
    });
    await age(1);
    expect(await schemaOf(name, 'old')).toMatchObject({ sampleCount: 1, fields: { length: 2 } });
    await age(4);
    expect(await app.as(owner).get(pathOf(name, 'old'))).toMatchObject(none);
    await answered(name, 'another', [structured({})]);
    expect(await app.database.query('SELECT tool_name FROM tool_output_shapes')).toEqual([{ tool_name: 'another' }]);
  });

  verifies('output-schema:processes', 'are all counted from several concurrent processes', async () => {
    const name = await createServer(app, owner);
    const others = await Promise.all([app.sibling(), app.sibling()]);
    const services = [app, ...others];
    for (let round = 0; round < 5; round += 1) {
      await Promise.all(
        services.map((service, at) => answered(name, 'busy', [structured({ [`by-${'abc'[at]}`]: round })], service)),
      );
    }
    const { sampleCount, fields } = await schemaOf(name, 'busy');
    expect([sampleCount, fields.length]).toEqual([15, 4]);
    await Promise.all(others.map((service) => service.close()));
  });

  verifies('output-schema:bounded', 'are few of a busy tool, of 200 tools of a server, and never large', async () => {
    const name = await createServer(app, owner);
    await answered(
      name,
      'busy',
      Array.from({ length: 1_020 }, () => structured({ a: 1 })),
    );
    expect(await schemaOf(name, 'busy')).toMatchObject({ sampleCount: 30 });
    await answered(name, 'large', [structured({ a: 'x'.repeat(64 * 1024) })]);
    await answered(name, 'x'.repeat(257), [structured({ a: 1 })]);
    for (let at = 0; at < 3; at += 1) {
      for (let tool = 0; tool < 70; tool += 1) await answered(name, `tool-${at}-${tool}`, [structured({ a: tool })]);
    }
    const { id } = await serverRow(app, name);
    const rows = await app.database.query<{ n: string; longest: number }[]>(
      'SELECT count(*) AS n, max(length(tool_name)) AS longest FROM tool_output_shapes WHERE server_id = $1',
      [id],
    );
    expect(rows).toEqual([{ n: '200', longest: 9 }]);
  });
});

describe('access', () => {
  verifies('output-schema:owner-only', 'is readable by the owner only: for others the server is missing', async () => {
    const namespace = await createNamespace(app, owner);
    const name = await createServer(app, owner, { namespace });
    await answered(name, 'list', [structured({ a: 1 })]);
    const stranger = app.as(await app.account());
    const foreign = await stranger.get(pathOf(name, 'list'));
    const missing = await stranger.get(pathOf(`${namespace}/missing`, 'list'));
    expect([foreign.status, foreign.body]).toEqual([404, expect.objectContaining({ error: 'Server not found' })]);
    expect([missing.status, missing.body]).toEqual([foreign.status, foreign.body]);
    expect(await app.as().get(pathOf(name, 'list'))).toMatchObject({ status: 401, body: { error: 'Unauthorized' } });
  });
});

describe('calls', () => {
  verifies('output-schema:answer', 'contribute their results over the run endpoint and connections', async () => {
    const result = { content: [], structuredContent: { degrees: 21.5 } };
    const upstream = await startScripted(({ method, params }) => {
      if (method === 'tools/list')
        return JSON.stringify({ tools: [{ name: 'forecast', inputSchema: { type: 'object' } }] });
      const isFailure = JSON.stringify(params?.arguments).includes('fail');
      return JSON.stringify(isFailure ? { ...result, isError: true } : result);
    });
    const name = await createServer(app, owner);
    await publishExternal(app, owner, name, { upstreamUrl: upstream.url });
    const { path } = await createConnection(app, owner, { server: name });
    for (const args of [{}, { fail: true }]) {
      const params = { name: 'forecast', arguments: args };
      const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
      expect((await app.as(owner).post(`/run/${name.replace('/', '--')}`, call)).status).toBe(200);
      expect((await app.as(owner).post(`${path}/.tools/forecast`, args)).status).toBe(200);
    }
    await app.get(ToolOutputsService).settle();
    expect(await schemaOf(name, 'forecast')).toMatchObject({
      sampleCount: 2,
      zodSchema: 'z.object({ "degrees": z.number().optional() })',
    });
    await upstream.close();
  });
});

/** A tracker's day: what 40 people and three programs ask of it. */
function* dayOfAnswers(): Generator<[tool: string, result: string]> {
  const pick = <T>(all: readonly T[], at: number): T => all[at % all.length];
  const iso = (at: number) => new Date(Date.UTC(2026, 10, 20) + at * 60_000).toISOString();
  for (let at = 0; at < 1_440; at += 1) {
    const issue = {
      id: at,
      key: `ISSUE-${at}`,
      title: `Login fails for user ${at}`,
      status: pick(['open', 'closed', 'in_progress'], at),
      createdAt: iso(at),
      closedAt: at % 3 === 1 ? iso(at + 1) : null,
      url: `https://tracker.example.com/issues/${at}`,
      ...(at % 4 > 0 && { assignee: { name: pick(['Alice', 'Bob'], at), email: `user${at}@example.com` } }),
      ...(at % 2 > 0 && { estimate: at % 10 === 1 ? at / 10 : at }),
    };
    yield ['get_issue', structured(issue)];
    if (at % 5 === 0) yield ['list_issues', text(JSON.stringify(Array.from({ length: at % 7 }, () => issue)))];
    if (at % 6 === 0) yield ['get_issue', JSON.stringify({ isError: true, content: [{ type: 'text', text: 'gone' }] })];
    if (at % 9 === 0)
      yield ['votes', text(JSON.stringify({ votes: { [`user_${10_000 + at}`]: 1, [`user_${20_000 + at}`]: -1 } }))];
    if (at % 10 === 0) yield ['export', at % 20 === 0 ? text('a;b;c') : structured({ rows: at })];
  }
}

describe('a day of mixed answers', () => {
  verifies('output-schema:answer', 'gives schemas that a person would have written', async () => {
    const name = await createServer(app, owner);
    const { id } = await serverRow(app, name);
    const outputs = app.get(ToolOutputsService);
    const kept: [string, unknown][] = [];
    let at = 0;
    for (const [tool, result] of dayOfAnswers()) {
      outputs.observe(id, tool, result);
      if ((at += 1) % 200 === 0) await outputs.settle();
      const { structuredContent, isError } = JSON.parse(result) as { structuredContent?: unknown; isError?: boolean };
      if (structuredContent !== undefined && !isError) kept.push([tool, structuredContent]);
    }
    await outputs.settle();
    const issue = await schemaOf(name, 'get_issue');
    const fields =
      '"assignee": z.object({ "email": z.string().email().optional(), "name": z.string().optional() }).optional(), ' +
      '"closedAt": z.string().datetime({ offset: true }).nullable().optional(), ' +
      '"createdAt": z.string().datetime({ offset: true }).optional(), "estimate": z.number().optional(), ' +
      '"id": z.number().int().optional(), "key": z.string().optional(), ' +
      '"status": z.enum(["closed", "in_progress", "open"]).optional(), "title": z.string().optional(), ' +
      '"url": z.string().url().optional()';
    expect(issue.zodSchema).toBe(`z.object({ ${fields} })`);
    expect(issue.sampleCount).toBeGreaterThan(30);
    expect(issue.fields).toContainEqual({ path: '$.status', presence: 1, types: ['string'] });
    expect((await schemaOf(name, 'list_issues')).zodSchema).toMatch(/^z\.array\(z\.object\(\{ "assignee"/);
    expect((await schemaOf(name, 'votes')).zodSchema).toBe(
      'z.object({ "votes": z.record(z.string(), z.number().int()).optional() })',
    );
    expect((await schemaOf(name, 'export')).zodSchema).toBe(
      'z.union([z.string(), z.object({ "rows": z.number().int().optional() })])',
    );
    const schema = pasted(issue.zodSchema, z);
    for (const [tool, value] of kept) if (tool === 'get_issue') expect(schema.safeParse(value).success).toBe(true);
    const stored = await app.database.query<{ shape: string }[]>(
      'SELECT shape FROM tool_output_shapes WHERE server_id = $1',
      [id],
    );
    expect(JSON.stringify(stored)).not.toMatch(/Alice|Login|ISSUE|@|user_|https/);
  });
});
