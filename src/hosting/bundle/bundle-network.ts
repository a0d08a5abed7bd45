import { spawn } from 'node:child_process';
import { open, type FileHandle } from 'node:fs/promises';
import { Server } from 'node:net';
import { LOOPBACK_UP, TOOLS_PATH } from '../sandbox/isolation-checks.js';

/** Timeout of opening the socket, which takes a tenth of a second. */
const OPEN_MS_MAX = 10_000;

/** Length limit of the process's output in an error. */
const WORDS_CHARS_MAX = 500;

/** Script that listens on a loopback port, passes the socket to its parent, and exits. */
const LISTEN = `const server = require('node:net').createServer();
process.on('disconnect', () => process.exit());
server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }, server));`;

/** A network namespace that contains only one socket, on which this process listens. */
export interface BundleNetwork {
  /** Descriptor of the namespace, for processes that join it. */
  fd: number;
  /** Port of the socket inside the namespace. */
  port: number;
  /** Socket for a server of this process, which must close it. */
  socket: Server;
  /** Closes the descriptor; the namespace ends with its last process. Never rejects. */
  close(): Promise<void>;
}

/**
 * Creates a namespace. Only a process inside it can open a socket there, so a short-lived process does.
 *
 * @throws Error with the output of that process
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
    // The process has sent the socket, so it is alive and inside the namespace.
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

/** Proxy variables for a program; one that ignores them has no network. Loopback addresses bypass the proxy. */
export function proxyEnv(port: number): Record<string, string> {
  const proxy = `http://127.0.0.1:${port}`;
  const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy'];
  const direct = 'localhost,127.0.0.1';
  return {
    ...Object.fromEntries(names.map((name) => [name, proxy])),
    NO_PROXY: direct,
    no_proxy: direct,
    // Node from 22.21 on uses the other variables with this one.
    NODE_USE_ENV_PROXY: '1',
  };
}
