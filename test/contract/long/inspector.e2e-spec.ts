import { beforeAll, describe, expect } from '@jest/globals';
import { execFile } from 'node:child_process';
import { createRequire } from 'node:module';
import { delimiter, dirname, join } from 'node:path';
import { testAccount, testApp } from '../../support/app.js';
import { startEverything, type EverythingServer } from '../../support/upstream/everything.js';
import { createConnection } from '../../support/factories.js';
import { verifies } from '../../support/verifies.js';

const app = testApp();
let everything: EverythingServer;
const account = testAccount(app);
let endpoint: string;

interface Run {
  code: number;
  output: string;
  errors: string;
}

/** Runs MCP Inspector's command line mode against an endpoint, with only its URL and a bearer. */
function inspect(url: string, key: string, ...args: string[]): Promise<Run> {
  const manifest = createRequire(import.meta.url).resolve('@modelcontextprotocol/inspector-cli/package.json');
  const program = join(dirname(manifest), 'build', 'cli.js');
  const options = ['--cli', url, '--transport', 'http', '--header', `Authorization: Bearer ${key}`, ...args];
  // The inspector starts itself a second time, with the `node` of the PATH.
  const path = [dirname(process.execPath), process.env.PATH].join(delimiter);
  const env = { ...process.env, PATH: path, NODE_OPTIONS: '' };
  return new Promise((resolve) => {
    execFile(process.execPath, [program, ...options], { env, timeout: 150_000 }, (error, output, errors) => {
      resolve({ code: error ? Number(error.code ?? -1) : 0, output, errors });
    });
  });
}

beforeAll(async () => {
  everything = await startEverything();
  const { path } = await createConnection(app, account, { mcpUrl: everything.url });
  endpoint = `${app.url}${path}/mcp`;
});

describe("MCP Inspector's command line mode", () => {
  verifies('mcp:initialize', 'lists tools with only URL and bearer', async () => {
    const { code, output, errors } = await inspect(endpoint, account.key, '--method', 'tools/list');
    expect({ code, errors }).toMatchObject({ code: 0 });
    const { tools } = JSON.parse(output) as { tools: { name: string }[] };
    expect(tools.map(({ name }) => name)).toContain('echo');
  });

  verifies('mcp:initialize', 'calls a tool with only URL and bearer, in the short form of the path too', async () => {
    const short = endpoint.replace('/connect/', '/');
    for (const url of [endpoint, short]) {
      const call = ['--method', 'tools/call', '--tool-name', 'echo', '--tool-arg', 'message=Hello'];
      const { code, output, errors } = await inspect(url, account.key, ...call);
      expect({ code, errors }).toMatchObject({ code: 0 });
      expect(JSON.parse(output)).toEqual({ content: [{ type: 'text', text: 'Echo: Hello' }] });
    }
  });

  verifies('mcp:no-key', 'reports a refused bearer', async () => {
    const { code, output, errors } = await inspect(endpoint, 'slipway_wrong', '--method', 'tools/list');
    expect(code).not.toBe(0);
    expect(output).toBe('');
    expect(errors).toContain('The API key is not valid');
  });
});
