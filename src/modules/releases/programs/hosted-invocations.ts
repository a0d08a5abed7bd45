import type { Trace } from '../../../hosting/hosting.types.js';
import type { Invocation, InvocationPiece } from '../../logs/invocation.types.js';

/** A request that nobody else keeps a record of, such as the opening of a session. */
export function toInvocation(trace: Trace, request: NonNullable<Trace['request']>): Invocation {
  const { ref, outcome = 'ok', cpuMs = 0, wallMs = 0 } = trace;
  return {
    ...toPiece(trace),
    releaseId: ref.id,
    at: request.at,
    method: request.method,
    url: request.path.split('?')[0] ?? '',
    rpcMethod: request.rpcMethod,
    toolName: null,
    status: request.status,
    outcome,
    cpuMs,
    wallMs,
  };
}

/** What the runtime saw of a request that is recorded where it was called. */
export function toPiece({ ref, invocationId, outcome, cpuMs, lines, exceptions }: Trace): InvocationPiece {
  return {
    id: invocationId,
    serverId: ref.ownerId,
    ...(outcome === undefined ? {} : { outcome }),
    ...(cpuMs === undefined ? {} : { cpuMs }),
    lines,
    exceptions: exceptions.map(({ at, name, message }) => ({ at, name, message })),
  };
}
