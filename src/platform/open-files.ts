import { existsSync, readFileSync } from 'node:fs';
import type { Tuning } from '../config/tuning.js';

/** Number of files besides those of clients: sockets to upstreams and the database, logs, programs. */
const BESIDE_CLIENTS = 1_024;

/**
 * Checks the limit of open files: connections above this limit are closed without a response.
 *
 * @param limits text of `/proc/self/limits`
 * @returns a message with the next step; null when there are enough files, or the system does not report them
 */
export function openFilesFault({ httpConnectionsMax }: Tuning, limits?: string): string | null {
  let text = limits ?? '';
  if (limits === undefined && existsSync('/proc/self/limits')) text = readFileSync('/proc/self/limits', 'utf8');
  const filesMax = Number(/^Max open files +(\d+)/m.exec(text)?.[1] ?? Infinity);
  const needed = httpConnectionsMax + BESIDE_CLIENTS;
  if (filesMax >= needed) return null;
  return `This process may open ${filesMax} files, and ${httpConnectionsMax} connections need ${needed}: raise the limit (ulimit -n, LimitNOFILE).`;
}
