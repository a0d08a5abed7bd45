import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { sendJson } from '../special-upstreams/scripted-upstream.js';
import { listen, shut } from './upstream-net.js';

/** A session of the bridge: one process of the server. */
interface Bridged {
  child: ChildProcess;
  /** Open POSTs by the id of their request. */
  waiting: Map<unknown, ServerResponse>;
  stream: ServerResponse | null;
  /** Messages for the GET stream until it is open. */
  queued: string[];
}

/**
 * Serves a Node.js program that speaks MCP over stdio by streamable HTTP, one process for each session. Answers requests as
 * JSON; everything else that the program sends goes to the GET stream of its session.
 */
export async function startStdioBridge(args: string[]): Promise<{ url: string; close(): Promise<void> }> {
  const sessions = new Map<string, Bridged>();

  const begin = (): Bridged => {
    const child = spawn(process.execPath, args, { env: { PATH: process.env.PATH }, stdio: ['pipe', 'pipe', 'ignore'] });
    const session: Bridged = { child, waiting: new Map(), stream: null, queued: [] };
    createInterface({ input: child.stdout }).on('line', (line) => {
      const { id, method } = JSON.parse(line) as { id?: unknown; method?: string };
      const asked = method === undefined ? session.waiting.get(id) : undefined;
      if (asked) {
        session.waiting.delete(id);
        sendJson(asked, line);
      } else if (session.stream) session.stream.write(`data: ${line}\n\n`);
      else session.queued.push(line);
    });
    return session;
  };

  const serve = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const name = req.headers['mcp-session-id'] as string | undefined;
    const existing = name === undefined ? undefined : sessions.get(name);
    if (name !== undefined && !existing) return void res.writeHead(404).end();
    if (req.method === 'DELETE') {
      existing?.child.kill('SIGKILL');
      sessions.delete(name ?? '');
      return void res.writeHead(200).end();
    }
    if (req.method === 'GET') {
      if (!existing) return void res.writeHead(405).end();
      res.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
      for (const line of existing.queued.splice(0)) res.write(`data: ${line}\n\n`);
      existing.stream = res;
      return void res.on('close', () => (existing.stream = null));
    }
    const body = await text(req);
    const { id, method } = JSON.parse(body) as { id?: unknown; method?: string };
    let session = existing;
    if (!session) {
      if (method !== 'initialize') return void res.writeHead(400).end();
      session = begin();
      const minted = randomUUID();
      sessions.set(minted, session);
      res.setHeader('mcp-session-id', minted);
    }
    if (id !== undefined && method !== undefined) session.waiting.set(id, res);
    else res.writeHead(202).end();
    session.child.stdin?.write(`${JSON.stringify(JSON.parse(body))}\n`);
  };

  const server = createServer((req, res) => void serve(req, res));
  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    close: async () => {
      for (const { child } of sessions.values()) child.kill('SIGKILL');
      await shut(server);
    },
  };
}
