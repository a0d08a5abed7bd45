import { spawn } from 'node:child_process';
import { open, type FileHandle } from 'node:fs/promises';
import { Server } from 'node:net';
import { LOOPBACK_UP, TOOLS_PATH } from '../sandbox/isolation-checks.js';

/** A process that only opens a socket takes a tenth of a second. */
const OPEN_MS_MAX = 10_000;

/** What it says when it cannot is told up to here. */
const WORDS_CHARS_MAX = 500;

/** Listens on a port of the loopback address it finds itself with, hands the socket over, and is not needed any more. */
const LISTEN = `const server = require('node:net').createServer();
process.on('disconnect', () => process.exit());
server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }, server));`;

/** A network in which there is nothing but one socket, on which this process listens. */
export interface BundleNetwork {
  /** The namespace, to be given to whoever is to join. */
  fd: number;
  /** Where the socket is, in there. */
  port: number;
  /** For a server of this process to listen on. Its to close. */
  socket: Server;
  /** Lets go of the namespace; it is gone with its last process. Never rejects. */
  close(): Promise<void>;
}

/**
 * Makes one. Only a process inside a network can open a socket there, so one is started for that and ends again.
 *
 * @throws Error with what that process said
 */
export async function openBundleNetwork(): Promise<BundleNetwork> {
  const inside = ['sh', '-c', `${LOOPBACK_UP} && exec "$@"`, 'sh', process.execPath, '--eval', LISTEN];
  const child = spawn('unshare', ['--net', '--', ...inside], {
    env: { PATH: TOOLS_PATH },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    timeout: OPEN_MS_MAX,
    killSignal: 'SIGKILL',
  });
  let words = '';
  child.stderr?.on('error', () => undefined).on('data', (chunk: Buffer) => (words += chunk.toString('utf8')));
  try {
    const { port, socket } = await new Promise<Pick<BundleNetwork, 'port' | 'socket'>>((resolve, reject) => {
      const failed = () => reject(new Error(`a network could not be made: ${words.slice(0, WORDS_CHARS_MAX)}`));
      child.on('error', reject).once('close', failed);
      child.once('message', (said, handle) => {
        if (handle instanceof Server) resolve({ port: (said as { port: number }).port, socket: handle });
        else failed();
      });
    });
    // It opened the socket, so it is alive, and in the network.
    const namespace = await openNamespace(child.pid, socket);
    return { fd: namespace.fd, port, socket, close: () => namespace.close().catch(() => undefined) };
  } finally {
    child.kill('SIGKILL');
  }
}

async function openNamespace(pid: number | undefined, socket: Server): Promise<FileHandle> {
  try {
    return await open(`/proc/${pid}/ns/net`);
  } catch (error) {
    socket.close();
    throw error;
  }
}

/** By which programs find the way out: one that does not look finds none. Its own addresses are not asked through it. */
export function proxyEnv(port: number): Record<string, string> {
  const proxy = `http://127.0.0.1:${port}`;
  const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy'];
  const direct = 'localhost,127.0.0.1';
  return {
    ...Object.fromEntries(names.map((name) => [name, proxy])),
    NO_PROXY: direct,
    no_proxy: direct,
    // Node from 22.21 on obeys the others with it.
    NODE_USE_ENV_PROXY: '1',
  };
}
