import { randomInt } from 'node:crypto';
import { createServer, type AddressInfo, type Server } from 'node:net';
import type { Server as HttpServer } from 'node:http';
import { endAfterFile } from '../jest/leftovers.mjs';

/** Starts a server on a free port of 127.0.0.1 and gives that port. It is shut when the test file is over. */
export async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      server.off('error', reject);
      resolve();
    });
  });
  endAfterFile(() => shut(server));
  return (server.address() as AddressInfo).port;
}

/** Closes a server at once; an HTTP(S) server cuts the connections that are still open. Safe to call twice. */
export async function shut(server: Server | HttpServer): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  if ('closeAllConnections' in server) server.closeAllConnections();
  await closed;
}

/**
 * A port of 127.0.0.1 that was free a moment ago. The port is not reserved. It lies below the range of the system, so that no
 * outgoing connection takes it meanwhile.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 32_000);
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => resolve(true));
    });
    await new Promise((resolve) => server.close(resolve));
    if (isFree) return port;
  }
}
