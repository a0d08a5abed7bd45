import type { ProgramRef } from '../../../hosting/hosting.types.js';

/** The module of a connection as a program. A connection's module never changes, so there is one version of it. */
export function sourceProgram(connectionId: string, isStateful: boolean): ProgramRef {
  return { kind: 'source', id: connectionId, ownerId: connectionId, engine: 'worker', isStateful };
}
