import type { Server } from 'node:http';
import { createServer, type AddressInfo } from 'node:net';

/** Starts an HTTP(S) server on a free port of 127.0.0.1 and gives that port. */
export async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      server.off('error', reject);
      resolve();
    });
  });
  return (server.address() as AddressInfo).port;
}

/** Closes an HTTP(S) server at once, cutting the connections that are still open. Safe to call twice. */
export async function shut(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeAllConnections();
  await closed;
}

/** A port of 127.0.0.1 that was free a moment ago: nobody listens on it until somebody takes it. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
