import type { ProgramRef } from '../../hosting/hosting.types.js';

export function releaseProgram(id: string, ownerId: string, isStateful: boolean): ProgramRef {
  return { kind: 'release', id, ownerId, engine: 'worker', isStateful };
}

/** Returns the program of a bundle. Its sessions are processes of one host. */
export function bundleProgram(id: string, ownerId: string): ProgramRef {
  return { kind: 'release', id, ownerId, engine: 'bundle', isStateful: true };
}

/**
 * Returns the program of a module during its scan. Its own owner id keeps it from replacing the current release or
 * reading its stored data.
 */
export function scannedProgram(id: string, isStateful: boolean): ProgramRef {
  return releaseProgram(id, id, isStateful);
}

/** Returns the program of a bundle during its scan, with its own owner id. */
export function scannedBundle(id: string): ProgramRef {
  return bundleProgram(id, id);
}

/** Returns true for a program that runs only to be scanned. */
export function isScanned({ id, ownerId }: ProgramRef): boolean {
  // eslint-disable-next-line no-restricted-syntax -- The owner is a server.
  return id === ownerId;
}
