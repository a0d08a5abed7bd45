import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { INVOCATION_HEADER } from '../../src/hosting/hosting.types.js';
import { ask, bundled, HostedPrograms, rpc } from '../support/hosted-programs.js';
import { until } from '../support/until.js';

const SERVER = `
  import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
  import { z } from 'zod';
  export default function ({ config, env }) {
    const server = new McpServer({ name: 'weather', version: '1.0.0' });
    server.registerTool('given', { description: 'What it was given' }, async () => {
      console.log('asked for', { config });
      return { content: [{ type: 'text', text: JSON.stringify({ config, env }) }] };
    });
    return server.server;
  }`;

describe('a program in workerd', () => {
  const programs = new HostedPrograms();
  let server: string;

  beforeAll(async () => {
    server = await bundled(SERVER);
  });
  afterAll(() => programs.stopAll());

  it('answers MCP when the module is a factory of servers, with its secrets and the configuration of the query', async () => {
    const program = await programs.start(server, { secrets: { API_KEY: 'sesame "€"\n' } });
    const { reply } = await rpc(program, 'tools/call', { name: 'given', arguments: {} }, { path: '/?db.host=x&n=5' });
    expect(JSON.parse(reply.result.content[0].text)).toEqual({
      config: { db: { host: 'x' }, n: 5 },
      env: { API_KEY: 'sesame "€"\n' },
    });
  });

  it('answers HTTP when the module is a worker with a fetch handler, and hides what is ours from it', async () => {
    const program = await programs.start(
      'export default { fetch: (request, env) => Response.json({ url: request.url, headers: [...request.headers.keys()], env, cf: request.cf ?? null }) }',
      { secrets: { API_KEY: 'sesame' } },
    );
    const { json } = await ask(program, { path: '/x?y=1', headers: { [INVOCATION_HEADER]: crypto.randomUUID() } });
    expect(json()).toEqual({
      url: 'http://program.test/x?y=1',
      headers: ['connection', 'host'],
      env: { API_KEY: 'sesame' },
      cf: null,
    });
  });

  it('tells whose request printed a line', async () => {
    const program = await programs.start(server);
    const id = crypto.randomUUID();
    await rpc(program, 'tools/call', { name: 'given', arguments: {} }, { headers: { [INVOCATION_HEADER]: id } });
    const trace = await until(() => program.traces[0], 'the line is told');
    expect(trace).toMatchObject({ invocationId: id, lines: [{ level: 'log', message: 'asked for { config: {} }' }] });
  });

  it('does not start a module that throws, and says what it threw', async () => {
    await expect(programs.start("throw new Error('no luck')")).rejects.toThrow('Error: no luck\n    at module.js:1:7');
  });
});
