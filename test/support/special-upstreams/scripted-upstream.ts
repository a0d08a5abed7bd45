import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { listen, shut } from '../upstream/upstream-net.js';

/** A JSON-RPC message as it came. */
export interface ScriptedMessage {
  id?: number;
  method?: string;
  params?: Record<string, unknown>;
  /** The session the message came in. */
  session?: string;
}

/**
 * Answers one request; `nth` counts the requests of this method from 1. Returning a string sends it as a result, byte
 * for byte; returning nothing means that the script has answered by `res` itself, or never will.
 */
export type Script = (message: ScriptedMessage, res: ServerResponse, nth: number) => string | undefined | void;

/** A running upstream whose answers are written by hand. */
export interface ScriptedUpstream {
  url: string;
  /** Every message in order of arrival. */
  seen: ScriptedMessage[];
  count(method: string): number;
  close(): Promise<void>;
}

/**
 * Starts an upstream that does the legacy handshake soundly and leaves every other request to the script. With
 * `sessions` each handshake mints one, `session-1` first; what becomes of them is the script's affair.
 */
export async function startScripted(
  script: Script,
  { sessions = false, capabilities = { tools: {} } }: { sessions?: boolean; capabilities?: object } = {},
): Promise<ScriptedUpstream> {
  const hello = JSON.stringify({
    protocolVersion: '2025-11-25',
    capabilities,
    serverInfo: { name: 'scripted', version: '1.0.0' },
  });
  const seen: ScriptedMessage[] = [];
  const count = (method: string) => seen.filter((message) => message.method === method).length;
  const serve = async (req: IncomingMessage, res: ServerResponse) => {
    const body = await text(req).catch(() => '');
    if (body === '') return void res.writeHead(405).end();
    const session = req.headers['mcp-session-id'] as string | undefined;
    const message: ScriptedMessage = { ...(JSON.parse(body) as ScriptedMessage), ...(session ? { session } : {}) };
    seen.push(message);
    if (message.id === undefined) return void res.writeHead(202).end();
    if (sessions && message.method === 'initialize') {
      res.setHeader('mcp-session-id', `session-${count('initialize')}`);
    }
    if (message.method === 'server/discover') return sendJson(res, unknownMethod(message.id));
    const result = message.method === 'initialize' ? hello : script(message, res, count(message.method ?? ''));
    if (typeof result === 'string') sendJson(res, `{"jsonrpc":"2.0","id":${message.id},"result":${result}}`);
  };
  const server = createServer((req, res) => void serve(req, res));
  const port = await listen(server);
  return { url: `http://127.0.0.1:${port}/mcp`, seen, count, close: () => shut(server) };
}

function unknownMethod(id: number): string {
  return JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } });
}

/** Sends this text as a whole JSON answer. */
export function sendJson(res: ServerResponse, json: string, status = 200): void {
  res.writeHead(status, { 'content-type': 'application/json' }).end(json);
}
