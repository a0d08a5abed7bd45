import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { WebSocket } from 'ws';
import type { Random } from './random.js';
import { rpcMessage } from './mcp.js';
import { anyValue, hugeValue, oddText } from './values.js';

/** Time for the service to work on what was sent while the tunnel is open. */
const TALK_MS = 150;

/** A frame of a local server: an answer to what the service asked, or what no server sends. */
function frame(random: Random, asked: { id: unknown; method: string }[]): string | Buffer {
  const last = asked.at(-1);
  const answer = (result: unknown) => JSON.stringify({ jsonrpc: '2.0', id: last?.id ?? 1, result });
  switch (random.int(0, 9)) {
    case 0:
      return oddText(random);
    case 1:
      return random.bytes(random.int(0, 300));
    case 2:
      return JSON.stringify(anyValue(random)) ?? '';
    case 3:
      return JSON.stringify(rpcMessage(random));
    case 4:
      return answer(anyValue(random));
    case 5:
      return answer({
        protocolVersion: random.pick(['2025-11-25', '1', 1]),
        capabilities: anyValue(random),
        serverInfo: anyValue(random),
      });
    case 6:
      return answer({
        tools: [{ name: oddText(random), inputSchema: anyValue(random) }, anyValue(random)],
        nextCursor: anyValue(random),
      });
    case 7:
      return JSON.stringify({ jsonrpc: '2.0', id: last?.id ?? oddText(random), error: anyValue(random) });
    case 8:
      return random.chance(0.1) ? (JSON.stringify(hugeValue(random)) ?? '') : `${answer({})}${answer({})}`;
    default:
      return JSON.stringify({
        jsonrpc: '2.0',
        method: random.pick(['notifications/tools/list_changed', 'notifications/progress', 'x']),
        params: anyValue(random),
      });
  }
}

/** Answers as a sound local server does, so that later frames meet an open session. */
function soundAnswer({ id, method }: { id: unknown; method: string }): string {
  const results: Record<string, object> = {
    initialize: {
      protocolVersion: '2025-11-25',
      capabilities: { tools: { listChanged: true } },
      serverInfo: { name: 'local', version: '1' },
    },
    'tools/list': { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] },
  };
  return JSON.stringify({ jsonrpc: '2.0', id, result: results[method] ?? { content: [] } });
}

/**
 * Opens the tunnel of a connection as a local server, sends frames while `call` calls the connection, and ends it.
 *
 * @returns number of frames sent; 0 when the handshake was refused
 */
export async function talk(
  random: Random,
  url: string,
  key: string,
  path: string,
  call: () => Promise<void>,
): Promise<number> {
  const suffix = random.pick(['', '/uplink', '?force=1', `?force=${random.pick(['0', 'x'])}`]);
  const socket = new WebSocket(`${url.replace('http', 'ws')}${path}${suffix}`, {
    headers: { authorization: `Bearer ${key}` },
  });
  // The service closes tunnels that break the rules, and resets those that flood it.
  socket.on('error', () => undefined);
  const gone = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  const opened = await Promise.race([
    once(socket, 'open').then(
      () => true,
      () => false,
    ),
    gone.then(() => false),
  ]);
  if (!opened) return 0;
  const isSound = random.chance(0.6);
  const asked: { id: unknown; method: string }[] = [];
  socket.on('message', (data: Buffer) => {
    const message = JSON.parse(data.toString()) as { id?: unknown; method?: string };
    if (message.id === undefined || message.method === undefined) return;
    const request = { id: message.id, method: message.method };
    asked.push(request);
    if (isSound && request.method !== 'tools/call') socket.send(soundAnswer(request));
  });
  const calling = call();
  let sent = 0;
  for (let rounds = random.int(1, 3); rounds > 0 && socket.readyState === WebSocket.OPEN; rounds--) {
    for (let i = random.int(1, 8); i > 0; i--) {
      const message = frame(random, asked);
      socket.send(message, { binary: Buffer.isBuffer(message), fin: !random.chance(0.03) });
      sent++;
    }
    if (random.chance(0.1)) socket.ping(random.bytes(20));
    await Promise.race([wait(TALK_MS), gone]);
  }
  if (random.chance(0.5)) socket.terminate();
  else socket.close(random.pick([1000, 1001, 3000, 4999]), 'closing');
  await Promise.race([gone, wait(2_000)]);
  socket.terminate();
  await calling;
  return sent;
}
