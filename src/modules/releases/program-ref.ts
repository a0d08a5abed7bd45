import type { ProgramRef } from '../../hosting/hosting.types.js';

/** The program that runs the module of a release. */
export function releaseProgram(id: string, ownerId: string, isStateful: boolean): ProgramRef {
  return { kind: 'release', id, ownerId, engine: 'worker', isStateful };
}

/** The program that runs the bundle of a release. Its sessions are processes of one host. */
export function bundleProgram(id: string, ownerId: string): ProgramRef {
  return { kind: 'release', id, ownerId, engine: 'bundle', isStateful: true };
}

/**
 * The program of a module during its scan. It has an owner of its own, so that it neither replaces the current release nor
 * sees its stored data.
 */
export function scannedProgram(id: string, isStateful: boolean): ProgramRef {
  return releaseProgram(id, id, isStateful);
}

/** The program of a bundle during its scan, with an owner of its own. */
export function scannedBundle(id: string): ProgramRef {
  return bundleProgram(id, id);
}

/** True for a program that runs only to be scanned. */
export function isScanned({ id, ownerId }: ProgramRef): boolean {
  // eslint-disable-next-line no-restricted-syntax -- The owner is a server.
  return id === ownerId;
}
