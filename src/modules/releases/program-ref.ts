import type { ProgramRef } from '../../hosting/hosting.types.js';

export function releaseProgram(id: string, ownerId: string, isStateful: boolean): ProgramRef {
  return { kind: 'release', id, ownerId, engine: 'worker', isStateful };
}

/** Returns the program of a bundle, whose sessions are processes of one host. */
export function bundleProgram(id: string, ownerId: string): ProgramRef {
  return { kind: 'release', id, ownerId, engine: 'bundle', isStateful: true };
}

/** Returns a program to scan. Its own owner id keeps it from replacing the current release or reading its stored data. */
export function scannedProgram(id: string, isStateful: boolean): ProgramRef {
  return releaseProgram(id, id, isStateful);
}

/** Returns a bundle to scan, which has its own owner id during the scan. */
export function scannedBundle(id: string): ProgramRef {
  return bundleProgram(id, id);
}

export function isScanned({ id, ownerId }: ProgramRef): boolean {
  // eslint-disable-next-line no-restricted-syntax -- The owner is a server.
  return id === ownerId;
}
