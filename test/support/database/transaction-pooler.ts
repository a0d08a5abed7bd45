import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

const READY = Buffer.from('Z\0\0\0\x05I');

/** The error of PgBouncer for a transaction in statement mode, and the end of the answer. */
const FIELDS = 'SERROR\0VERROR\0C08P01\0Mtransaction blocks not allowed in statement pooling mode\0\0';
const REFUSAL = Buffer.concat([Buffer.from('E\0\0\0'), Buffer.from([FIELDS.length + 4]), Buffer.from(FIELDS), READY]);

/**
 * A pooler of simple queries in front of a real Postgres: each transaction gets the first session that no other client holds. For
 * clients that ask one after the other.
 */
export async function startPooler(url: string, mode: 'transaction' | 'statement') {
  const target = new URL(url);
  const sessions: { socket: Socket; asker: Socket; holder: Socket | null }[] = [];
  const server = createServer((client) => {
    // Each client logs in to a session of its own, which the pool keeps.
    const socket = connect(Number(target.port), target.hostname);
    const session = { socket, asker: client, holder: null as Socket | null };
    let isLoggedIn = false;
    socket
      .on('error', () => undefined)
      .on('data', (answer: Buffer) => {
        if (!isLoggedIn && answer.includes(READY)) {
          isLoggedIn = true;
          sessions.push(session);
        }
        session.asker.write(answer);
      });
    client
      .on('error', () => undefined)
      .on('data', (request: Buffer) => {
        if (!isLoggedIn) {
          socket.write(request);
          return;
        }
        if (request[0] === 'X'.charCodeAt(0)) return;
        const isBegin = request.includes('BEGIN');
        if (isBegin && mode === 'statement') {
          client.write(REFUSAL);
          return;
        }
        const given =
          sessions.find(({ holder }) => holder === client) ?? sessions.find(({ holder }) => holder === null);
        if (!given) throw new Error('No session is free.');
        given.asker = client;
        if (isBegin) given.holder = client;
        if (request.includes('COMMIT')) given.holder = null;
        given.socket.write(request);
      });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const relayed = new URL(url);
  relayed.port = String((server.address() as AddressInfo).port);
  const close = async () => {
    for (const { socket } of sessions) socket.destroy();
    const closed = once(server, 'close');
    server.close();
    await closed;
  };
  return { url: relayed.href, close };
}
