import type { ServerResponse } from 'node:http';

/** Time after which a reader that takes no bytes has disconnected or is hostile; one on a slow line takes some. */
export const STALL_MS_MAX = 30_000;

/**
 * Cuts off a response when its reader has read nothing for 30 s: unsent data takes memory, or keeps a file open. It
 * sees only bytes that leave this process; the system takes up to 1 MB at a time, so a reader below about 40 KB/s might
 * be cut off too. For responses that are sent immediately, not for event streams.
 */
export function dropStalledReader(response: ServerResponse, stallMs = STALL_MS_MAX): void {
  response.setTimeout(stallMs, () => response.destroy());
}
