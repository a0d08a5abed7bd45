/**
 * Accepts several new connections in one turn of the event loop.
 *
 * libuv accepts one connection in a turn for each handle that listens, so new connections wait behind others when turns
 * are long: during a flood of connections the p95 of a request on a new one was 5 s, and 0.9 s with four handles and
 * the backlog (`node bench/hostile.mjs`). A child process duplicates the listening socket: Node has no other way. The
 * handles belong to the server, which counts and limits their connections as its own and closes them. If a socket
 * cannot be duplicated, as on Windows, the server works without more handles.
 */
import { spawn } from 'node:child_process';
import cluster from 'node:cluster';
import type { Server } from 'node:http';

/**
 * Maximum number of connections that the kernel sets up before they are accepted. The kernel's own limit (`somaxconn`) is 4,096 by
 * default.
 */
const BACKLOG = 4_096;

const MORE_HANDLES = 3;

/** Time limit of a duplication; the child process takes 40 ms. */
const DUPLICATION_MS_MAX = 5_000;

interface Handle {
  onconnection: unknown;
  listen(backlog: number): number;
  close(...args: unknown[]): void;
  [owner: symbol]: unknown;
}

const CHILD = `process.on('message', (_, handle) => process.send(0, handle))`;

export async function acceptMore(server: Server): Promise<void> {
  if (cluster.isWorker) return;
  const { _handle: main } = server as Server & { _handle?: Handle | null };
  const owner = main && Object.getOwnPropertySymbols(main).find(({ description }) => description === 'owner_symbol');
  if (!owner || process.platform === 'win32') return;
  main.listen(BACKLOG);
  const handles = await duplicates(main);
  if (!server.listening) return handles.forEach((handle) => handle.close());
  for (const handle of handles) {
    handle[owner] = server;
    handle.onconnection = main.onconnection;
    handle.listen(BACKLOG);
  }
  const close = main.close.bind(main);
  main.close = (...args) => {
    for (const handle of handles) handle.close();
    close(...args);
  };
}

function duplicates(handle: Handle): Promise<Handle[]> {
  return new Promise((resolve) => {
    const copies: Handle[] = [];
    const child = spawn(process.execPath, ['-e', CHILD], { env: {}, stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
    const finish = () => {
      clearTimeout(timer);
      child.kill();
      resolve(copies);
    };
    const timer = setTimeout(finish, DUPLICATION_MS_MAX);
    child.on('error', finish).on('exit', finish);
    child.on('message', (_, duplicate) => {
      copies.push(duplicate as unknown as Handle);
      if (copies.length === MORE_HANDLES) finish();
    });
    for (let n = 0; n < MORE_HANDLES; n += 1) child.send(0, handle as never, () => undefined);
  });
}
