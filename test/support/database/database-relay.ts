import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { once } from 'node:events';

/** A TCP relay in front of a real Postgres (or Redis), so that a test can take it away and bring it back. */
export interface DatabaseRelay {
  /** URL of the server through the relay. */
  url: string;
  /** Cuts every connection and refuses new ones. */
  shut(): Promise<void>;
  /** Connections stay and new ones are accepted, but nothing passes any more: a dead network. */
  freeze(): void;
  /** Lets everything through again; `to` is another server, for one that was started anew. */
  open(to?: string): Promise<void>;
  close(): Promise<void>;
}

/** Starts a relay on a free port of 127.0.0.1 to the server of `url`. */
export async function startDatabaseRelay(url: string): Promise<DatabaseRelay> {
  let target = new URL(url);
  let isFrozen = false;
  const sockets = new Set<Socket>();
  let isShut = false;
  const server = createServer((client) => {
    // A connection accepted during shut() would keep the server from closing.
    if (isShut) {
      client.destroy();
      return;
    }
    const upstream = connect(Number(target.port), target.hostname);
    const pairs = [
      [client, upstream],
      [upstream, client],
    ] as const;
    for (const [from, to] of pairs) {
      sockets.add(from);
      from.on('error', () => to.destroy());
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
      from.pipe(to);
      if (isFrozen) from.pause();
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const relayUrl = new URL(url);
  relayUrl.hostname = '127.0.0.1';
  relayUrl.port = String(port);

  const shut = async () => {
    isShut = true;
    for (const socket of sockets) socket.destroy();
    if (!server.listening) return;
    const closed = once(server, 'close');
    server.close();
    await closed;
  };
  return {
    url: relayUrl.href,
    shut,
    freeze: () => {
      isFrozen = true;
      for (const socket of sockets) {
        socket.unpipe();
        socket.pause();
      }
    },
    open: async (to) => {
      if (to !== undefined) target = new URL(to);
      if (isFrozen) {
        // A frozen connection has no partner any more. It is cut, as a network that returns resets unknown connections.
        isFrozen = false;
        for (const socket of sockets) socket.destroy();
      }
      isShut = false;
      if (server.listening) return;
      server.listen(port, '127.0.0.1');
      await once(server, 'listening');
    },
    close: shut,
  };
}
