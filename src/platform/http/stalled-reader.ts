import type { ServerResponse } from 'node:http';

/** A reader on a bad line takes some bytes in this time; one that takes none has gone, or means to hold us up. */
export const STALL_MS_MAX = 30_000;

/**
 * Cuts a response off when its reader has taken nothing of it for 30 s: what waits to be sent lies in memory, or keeps a
 * file open. Seen are bytes that leave this process; the system takes them on in steps of up to 1 MB, so a reader of less
 * than some 40 KB/s may be cut off too. For answers that are sent immediately, not for those that wait for something to tell.
 */
export function dropStalledReader(response: ServerResponse, stallMs = STALL_MS_MAX): void {
  response.setTimeout(stallMs, () => response.destroy());
}
