import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** Bytes of the path of a unix socket, less the closing zero (Linux 108, macOS 104). */
const PATH_BYTES_MAX = process.platform === 'darwin' ? 103 : 107;

/** The longest name of a socket, and its slash. */
const NAME_BYTES = 4;

/** Where the sockets of one program lie. */
export interface SocketFolder {
  path: string;
  /** The folder as the program writes it, from its run folder. */
  fromRunDir: string;
  /** Removes it when it is not the run folder itself. Never rejects. */
  remove(): Promise<void>;
}

/**
 * The run folder, when its path leaves room for the name of a socket. A longer one, such as under a deep data folder,
 * cannot hold sockets: then they lie in a short folder of their own in the system's place for temporary files.
 */
export async function socketFolder(runDir: string): Promise<SocketFolder> {
  if (Buffer.byteLength(runDir) + NAME_BYTES <= PATH_BYTES_MAX) {
    return { path: runDir, fromRunDir: '', remove: () => Promise.resolve() };
  }
  const folder = await mkdtemp(path.join(tmpdir(), 'sw-'));
  return {
    path: folder,
    fromRunDir: `${folder}/`,
    remove: () => rm(folder, { recursive: true, force: true }).catch(() => undefined),
  };
}
