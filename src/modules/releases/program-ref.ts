import type { ProgramRef } from '../../hosting/hosting.types.js';

/** The module of a release as a program. */
export function releaseProgram(id: string, ownerId: string, isStateful: boolean): ProgramRef {
  return { kind: 'release', id, ownerId, engine: 'worker', isStateful };
}

/** The bundle of a release as a program: its sessions are processes of one host. */
export function bundleProgram(id: string, ownerId: string): ProgramRef {
  return { kind: 'release', id, ownerId, engine: 'bundle', isStateful: true };
}

/**
 * The module of a release while it is looked at: an owner of its own, so that it neither takes the place of the release
 * that runs nor sees what that one stored.
 */
export function scannedProgram(id: string, isStateful: boolean): ProgramRef {
  return releaseProgram(id, id, isStateful);
}

/** Whether a program runs to be looked at only. */
export function isScanned({ id, ownerId }: ProgramRef): boolean {
  return id === ownerId;
}
