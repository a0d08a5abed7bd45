import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { pinPackage, type PageRun } from './doc-commands.js';
import type { DocBlock } from './doc-pages.js';

/** An MCP server as a client's configuration describes it. */
interface ServerEntry {
  url?: string;
  /** The member of Windsurf for `url`. */
  serverUrl?: string;
  headers?: Record<string, string>;
  command?: string;
  args?: string[];
  env?: Record<string, string>;
}

/** A configuration of an MCP client found on a page. */
export interface ClientConfig {
  block: DocBlock;
  entry: ServerEntry;
}

/** Every server in the client configurations of a page: JSON files and `claude mcp add` lines. */
export function clientConfigsOf(blocks: DocBlock[]): ClientConfig[] {
  return blocks.flatMap((block) => {
    if (/^sh\b/.test(block.info)) return claudeLines(block.text).map((entry) => ({ block, entry }));
    if (block.info !== 'json') return [];
    const { mcpServers = {}, servers = {} } = JSON.parse(block.text) as Record<string, Record<string, ServerEntry>>;
    return Object.values({ ...mcpServers, ...servers }).map((entry) => ({ block, entry }));
  });
}

/** `claude mcp add --transport http <name> <url> --header "<name>: <value>"`, with lines joined. */
function claudeLines(text: string): ServerEntry[] {
  const commands = text.replaceAll(/\\\n\s*/g, ' ').matchAll(/^claude mcp add --transport http \S+ (\S+)(.*)$/gm);
  return [...commands].map(([, url, rest]) => {
    const headers = [...rest.matchAll(/--header "([^:]+): ([^"]+)"/g)].map(([, name, value]) => [name, value]);
    return { url: url.replaceAll('"', ''), headers: Object.fromEntries(headers) as Record<string, string> };
  });
}

/** Connects a real MCP client with the configuration. @returns the names of the tools it lists */
export async function toolsThrough(
  { entry }: ClientConfig,
  { env, localize }: Pick<PageRun, 'env' | 'localize'>,
): Promise<string[]> {
  const fill = (text: string): string =>
    localize(text)
      .replaceAll(/\$\{(env:)?SLIPWAY_URL\}|\$SLIPWAY_URL/g, env.SLIPWAY_URL)
      .replaceAll(/\$\{(env:)?SLIPWAY_KEY\}|\$SLIPWAY_KEY|\$\{input:[\w-]+\}/g, env.SLIPWAY_KEY);
  const filled = (record: Record<string, string> = {}): Record<string, string> =>
    Object.fromEntries(Object.entries(record).map(([name, value]) => [name, fill(value)]));
  let transport: Transport;
  const url = entry.url ?? entry.serverUrl;
  if (url !== undefined) {
    const requestInit = { headers: filled(entry.headers) };
    transport = new StreamableHTTPClientTransport(new URL(fill(url)), { requestInit });
  } else {
    const { command = '', args = [] } = entry;
    const ownEnv = { ...env, ...filled(entry.env) };
    transport = new StdioClientTransport({
      command,
      args: args.map(pinPackage).map(fill),
      env: ownEnv,
      stderr: 'ignore',
    });
  }
  const client = new Client({ name: 'docs', version: '1.0.0' });
  await client.connect(transport, { timeout: 120_000 });
  try {
    return (await client.listTools()).tools.map(({ name }) => name);
  } finally {
    await client.close();
  }
}
