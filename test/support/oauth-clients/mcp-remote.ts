/*
 * `mcp-remote`, the program by which clients that only start local programs reach an MCP URL, as such a client starts it: with a
 * URL, and JSON-RPC on its standard input and output. Its browser (`BROWSER`) is a script that writes the address to a file.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { endAfterTest } from '../jest/leftovers.mjs';
import { freePort } from '../upstream/upstream-net.js';
import { until } from '../until.js';

/** A running `mcp-remote`. */
export interface McpRemote {
  /** The client that started it. It is connected once a person allowed it. */
  client: Client;
  connected: Promise<void>;
  /** The address that it opens in a browser for the n-th time, from 1. */
  opened(count?: number): Promise<string>;
}

/** A login may wait for a browser on a busy machine. */
const LOGIN_MS_MAX = 150_000;

/** Starts it for an MCP URL, without a header, on a home folder of its own. @param flags further arguments */
export async function startMcpRemote(url: string, flags: string[] = []): Promise<McpRemote> {
  const home = await mkdtemp(join(tmpdir(), 'slipway-mcp-remote-'));
  const [log, browser] = ['opened', 'browser'].map((name) => join(home, name));
  await writeFile(browser, `#!/bin/sh\nprintf '%s\\n' "$1" >> '${log}'\n`, { mode: 0o755 });
  const manifest = createRequire(import.meta.url).resolve('mcp-remote/package.json');
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [join(dirname(manifest), 'dist', 'proxy.js'), url, String(await freePort()), ...flags],
    env: { PATH: process.env.PATH ?? '', HOME: home, BROWSER: browser, MCP_REMOTE_CONFIG_DIR: join(home, 'config') },
    stderr: 'pipe',
  });
  let output = '';
  transport.stderr?.on('data', (text: Buffer) => (output += text.toString()));
  const client = new Client({ name: 'desktop', version: '1.0.0' });
  endAfterTest(async () => {
    await client.close();
    await rm(home, { recursive: true, force: true, maxRetries: 5 });
  });
  const connected = client.connect(transport, { timeout: LOGIN_MS_MAX });
  connected.catch(() => undefined);
  return {
    client,
    connected,
    opened: (count = 1) =>
      until(
        async () => (await readFile(log, 'utf8')).trim().split('\n')[count - 1],
        'mcp-remote opens a browser',
      ).catch((error: unknown) => {
        throw new Error(`It wrote:\n${output}`, { cause: error });
      }),
  };
}
