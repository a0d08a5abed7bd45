import { lstat, opendir, rm } from 'node:fs/promises';
import path from 'node:path';

export interface DiskLimits {
  bytes: number;
  /** Limit of files; a session has three. */
  files: number;
}

/** Limit of 1 GiB, at most about 13,000 sessions: a tenant whose code fills the disk is stopped without affecting others. */
export const DISK_LIMITS: DiskLimits = { bytes: 1_073_741_824, files: 40_000 };

/** Interval of disk checks; a slow check uses at most 1/100 of the time. */
const CHECK_MS = 30_000;
const PAUSE_FACTOR = 100;

const TRIMMED_TO = 0.5;

interface Stored {
  file: string;
  bytes: number;
  usedAt: number;
}

/** Stops counting above the limits. */
async function scan(folder: string, limits: DiskLimits): Promise<{ stored: Stored[]; isTooMuch: boolean }> {
  const stored: Stored[] = [];
  let bytes = 0;
  for await (const entry of await opendir(folder, { recursive: true })) {
    if (!entry.isFile()) continue;
    const file = path.join(entry.parentPath, entry.name);
    const stats = await lstat(file).catch(() => null);
    if (!stats) continue;
    stored.push({ file, bytes: stats.blocks * 512, usedAt: stats.mtimeMs });
    bytes += stats.blocks * 512;
    if (bytes > limits.bytes) return { stored, isTooMuch: true };
    if (stored.length > limits.files) return { stored, isTooMuch: true };
  }
  return { stored, isTooMuch: false };
}

/**
 * Deletes the least recently used sessions, down to half of the limits. Their clients receive 404 and open new ones.
 * Requires that no process uses the folder.
 */
export async function trimSessions(folder: string, limits = DISK_LIMITS): Promise<void> {
  if (!(await scan(folder, limits)).isTooMuch) return;
  const { stored } = await scan(folder, { bytes: Infinity, files: Infinity });
  const sessions = new Map<string, { files: string[]; bytes: number; usedAt: number }>();
  for (const { file, bytes, usedAt } of stored) {
    const name = /^(.*[0-9a-f]{64})\.sqlite/.exec(file)?.[1];
    if (name === undefined) continue;
    const session = sessions.get(name) ?? { files: [], bytes: 0, usedAt: 0 };
    session.files.push(file);
    session.bytes += bytes;
    session.usedAt = Math.max(session.usedAt, usedAt);
    sessions.set(name, session);
  }
  let remaining = { bytes: limits.bytes * TRIMMED_TO, files: limits.files * TRIMMED_TO };
  for (const { files, bytes } of [...sessions.values()].sort((a, b) => b.usedAt - a.usedAt)) {
    remaining = { bytes: remaining.bytes - bytes, files: remaining.files - files.length };
    if (remaining.bytes < 0 || remaining.files < 0) for (const file of files) await rm(file, { force: true });
  }
}

/** Checks the disk usage while a program runs; calls `onTooMuch` once. Returns a function that stops the checks. */
export function watchSessions(
  folder: string,
  onTooMuch: () => void,
  { limits = DISK_LIMITS, everyMs = CHECK_MS } = {},
): () => void {
  let timer: NodeJS.Timeout;
  let isOver = false;
  const next = (ms: number) => {
    timer = setTimeout(() => void check(), ms);
    timer.unref();
  };
  const check = async () => {
    const began = performance.now();
    // An unreadable folder is checked again later.
    const isTooMuch = await scan(folder, limits).then(
      (result) => result.isTooMuch,
      () => false,
    );
    if (isOver) return;
    if (isTooMuch) return onTooMuch();
    next(Math.max(everyMs, (performance.now() - began) * PAUSE_FACTOR));
  };
  next(everyMs);
  return () => {
    isOver = true;
    clearTimeout(timer);
  };
}
