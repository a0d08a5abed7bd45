import { toTimeText } from '../../../platform/http/time-text.js';
import type { FoundInvocation } from './invocation-search.js';
import type { InvocationDto } from './runtime-log.dto.js';

/** Lists every field that may leave the service. A record that has not come yet is shown as far as it is known. */
export function toInvocationDto(found: FoundInvocation): InvocationDto {
  const { payload } = found;
  return {
    id: found.id,
    timestamp: toTimeText(found.at),
    request: { method: found.method ?? '', url: found.url ?? '' },
    response: { status: found.status ?? 0, outcome: found.outcome ?? 'unknown' },
    duration: { cpuMs: Math.round(found.cpuMs ?? 0), wallMs: Math.round(found.wallMs ?? 0) },
    logs: found.lines.map(({ at, level, message }) => ({ timestamp: toTimeText(new Date(at)), level, message })),
    exceptions: found.exceptions.map(({ at, name, message }) => ({
      timestamp: toTimeText(new Date(at)),
      name,
      message,
    })),
    rpcMethod: found.rpcMethod,
    tool: found.toolName,
    releaseId: found.releaseId,
    leftOut: found.leftOut,
    ...(payload ? { payload: { arguments: payload.arguments, result: payload.result } } : {}),
  };
}
