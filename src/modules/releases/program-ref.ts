import type { ProgramRef } from '../../hosting/hosting.types.js';

export function releaseProgram(id: string, ownerId: string, isStateful: boolean): ProgramRef {
  return { kind: 'release', id, ownerId, engine: 'worker', isStateful };
}

/** Sessions of a bundle are processes of one host. */
export function bundleProgram(id: string, ownerId: string): ProgramRef {
  return { kind: 'release', id, ownerId, engine: 'bundle', isStateful: true };
}

/** The owner id of a scan keeps the module from replacing the current release or reading its stored data. */
export function scannedProgram(id: string, isStateful: boolean): ProgramRef {
  return releaseProgram(id, id, isStateful);
}

/** A bundle has its own owner id during its scan. */
export function scannedBundle(id: string): ProgramRef {
  return bundleProgram(id, id);
}

export function isScanned({ id, ownerId }: ProgramRef): boolean {
  // eslint-disable-next-line no-restricted-syntax -- The owner is a server.
  return id === ownerId;
}
