import { connect, createServer, type Socket } from 'node:net';
import { createSecureContext, TLSSocket } from 'node:tls';
import { listen } from './upstream/upstream-net.js';
import type { Certificate } from './special-upstreams/faulty-tls.js';

/** A TLS server on loopback in front of a server without TLS on this port. */
export interface TlsFront {
  port: number;
  close(): Promise<void>;
}

/** Answer to the request of a Postgres client for TLS, which comes before the handshake. */
const POSTGRES_TLS = 'S';

/** @param isPostgres TLS begins as the protocol of Postgres has it */
export async function startTlsFront(to: number, certificate: Certificate, isPostgres = false): Promise<TlsFront> {
  const sockets = new Set<Socket>();
  const secureContext = createSecureContext(certificate);
  const secure = (socket: Socket): void => {
    const near = new TLSSocket(socket, { isServer: true, secureContext });
    const far = connect(to, '127.0.0.1');
    for (const side of [near, far]) {
      side.on('error', () => undefined).once('close', () => (near.destroy(), far.destroy()));
    }
    near.pipe(far).pipe(near);
  };
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => undefined).once('close', () => sockets.delete(socket)));
    if (!isPostgres) return secure(socket);
    socket.once('data', () => {
      socket.write(POSTGRES_TLS);
      secure(socket);
    });
  });
  return {
    port: await listen(server),
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((closed) => server.close(closed));
    },
  };
}
