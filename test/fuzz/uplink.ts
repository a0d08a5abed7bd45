import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import fc, { type Arbitrary } from 'fast-check';
import { WebSocket } from 'ws';
import { bytes, chance, weighted, type Draw } from './draw.js';
import { rpcMessage } from './mcp.js';
import { anyValue, hugeValue, oddText, replaced } from './values.js';

/** Time for the service to work on what was sent while the tunnel is open. */
const TALK_MS = 150;

/** Answers of a sound local server, so that later frames meet an open session. */
const SOUND_RESULTS: Record<string, object> = {
  initialize: {
    protocolVersion: '2025-11-25',
    capabilities: { tools: { listChanged: true } },
    serverInfo: { name: 'local', version: '1' },
  },
  'tools/list': { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] },
};
const result = fc.constantFrom(...Object.values(SOUND_RESULTS)).chain((sound) => replaced(sound, anyValue));
const notification = fc.record({
  jsonrpc: fc.constant('2.0'),
  method: fc.constantFrom('notifications/tools/list_changed', 'notifications/progress', 'x'),
  params: anyValue,
});

/** A frame of a local server: an answer to the request of this id, or what no server sends. */
function frame(id: unknown): Arbitrary<string | Buffer> {
  const answer = (member: string, values: Arbitrary<unknown>) =>
    values.map((value) => ({ jsonrpc: '2.0', id, [member]: value }));
  const answers = [
    answer('result', result),
    answer('result', result),
    answer('result', anyValue),
    answer('error', anyValue),
  ];
  const value = fc.oneof(anyValue, rpcMessage, notification, ...answers);
  return weighted<string | Buffer>(
    [2, oddText],
    [2, bytes(300)],
    [14, value.map((message) => JSON.stringify(message))],
    [1, hugeValue.map((huge) => JSON.stringify(huge))],
    [1, fc.constant(JSON.stringify({ jsonrpc: '2.0', id, result: {} }).repeat(2))],
  );
}

/**
 * Opens the tunnel of a connection as a local server, sends frames while `call` calls the connection, and ends it.
 *
 * @param url of the connection
 * @returns number of frames sent; 0 when the handshake was refused
 */
export async function talk(draw: Draw, url: string, key: string, call: () => Promise<void>): Promise<number> {
  const suffix = draw(fc.constantFrom('', '/uplink', '?force=1', '?force=0', '?force=x'));
  const headers = { authorization: `Bearer ${key}` };
  const socket = new WebSocket(`${url.replace('http', 'ws')}${suffix}`, { headers });
  // The service closes tunnels that break the rules, and resets those that flood it.
  socket.on('error', () => undefined);
  const gone = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  await Promise.race([once(socket, 'open').catch(() => undefined), gone]);
  if (socket.readyState !== WebSocket.OPEN) return 0;
  const isSound = draw(chance(60));
  let lastId: unknown = 1;
  socket.on('message', (data: Buffer) => {
    const { id, method } = JSON.parse(data.toString()) as { id?: unknown; method?: string };
    if (id === undefined || method === undefined) return;
    lastId = id;
    if (!isSound || method === 'tools/call') return;
    socket.send(JSON.stringify({ jsonrpc: '2.0', id, result: SOUND_RESULTS[method] ?? { content: [] } }));
  });
  const calling = call();
  let sent = 0;
  for (
    let rounds = draw(fc.integer({ min: 1, max: 3 }));
    rounds > 0 && socket.readyState === WebSocket.OPEN;
    rounds--
  ) {
    for (let i = draw(fc.integer({ min: 1, max: 8 })); i > 0; i--) {
      const message = draw(frame(lastId));
      socket.send(message, { binary: Buffer.isBuffer(message), fin: !draw(chance(3)) });
      sent++;
    }
    if (draw(chance(10))) socket.ping(draw(bytes(20)));
    await Promise.race([wait(TALK_MS), gone]);
  }
  if (draw(fc.boolean())) socket.terminate();
  else socket.close(draw(fc.constantFrom(1000, 1001, 3000, 4999)), 'closing');
  await Promise.race([gone, wait(2_000)]);
  socket.terminate();
  await calling;
  return sent;
}
