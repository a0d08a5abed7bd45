import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** A relay in front of a real Postgres that ends connections in the packet which lets them in, and records what they ask for. */
export interface EndingPostgres {
  url: string;
  /** Parameters of the start of each connection. */
  starts: Record<string, string>[];
  /** How many of the next connections of each application end at once, by `application_name`. */
  ending: Record<string, number>;
  /** Cuts all connections. */
  cut(): void;
  close(): Promise<void>;
}

const READY = Buffer.from('Z\0\0\0\x05I');
const FIELDS = 'SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0';
const FATAL = Buffer.concat([Buffer.from('E\0\0\0'), Buffer.from([FIELDS.length + 4]), Buffer.from(FIELDS)]);

export async function startEndingPostgres(url: string): Promise<EndingPostgres> {
  const target = new URL(url);
  const starts: EndingPostgres['starts'] = [];
  const ending: EndingPostgres['ending'] = {};
  const sockets = new Set<Socket>();
  const cut = () => sockets.forEach((socket) => socket.destroy());
  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname);
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ]) {
      sockets.add(from);
      from.on('error', () => to.destroy());
      from.on('close', () => sockets.delete(from) && to.destroy());
    }
    client.pipe(upstream);
    client.once('data', (packet: Buffer) => {
      // Length, version, then names and values.
      const words = packet.toString('utf8', 8).split('\0');
      const pairs = words.flatMap((word, at) => (at % 2 === 0 && word ? [[word, words[at + 1]]] : []));
      const start = Object.fromEntries(pairs) as Record<string, string>;
      starts.push(start);
      const application = start.application_name;
      const relay = (chunk: Buffer) => {
        const end = chunk.indexOf(READY);
        if (end < 0 || !ending[application]) {
          client.write(chunk);
          if (end >= 0) upstream.off('data', relay).pipe(client);
          return;
        }
        ending[application] -= 1;
        upstream.off('data', relay);
        client.end(Buffer.concat([chunk.subarray(0, end + READY.length), FATAL]), () => upstream.destroy());
      };
      upstream.on('data', relay);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const relayed = new URL(url);
  relayed.hostname = '127.0.0.1';
  relayed.port = String((server.address() as AddressInfo).port);
  const close = async () => {
    const closed = once(server, 'close');
    server.close();
    cut();
    await closed;
  };
  return { url: relayed.href, starts, ending, cut, close };
}
