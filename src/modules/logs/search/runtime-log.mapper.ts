import { toTimeText } from '../../../platform/http/time-text.js';
import type { FoundInvocation } from './invocation-search.repository.js';
import type { InvocationDto } from './runtime-log.dto.js';

const textOf = (at: number): string => toTimeText(new Date(at));

/** Lists every field the answer may contain. An invocation whose main part has not come yet is shown as far as known. */
export function toInvocationDto(found: FoundInvocation): InvocationDto {
  const { payload } = found;
  return {
    id: found.id,
    timestamp: toTimeText(found.at),
    request: { method: found.method ?? '', url: found.url ?? '' },
    response: { status: found.status ?? 0, outcome: found.outcome ?? 'unknown' },
    duration: { cpuMs: Math.round(found.cpuMs ?? 0), wallMs: Math.round(found.wallMs ?? 0) },
    logs: found.lines.map(({ at, level, message }) => ({ timestamp: textOf(at), level, message })),
    exceptions: found.exceptions.map(({ at, name, message }) => ({ timestamp: textOf(at), name, message })),
    rpcMethod: found.rpcMethod ?? null,
    tool: found.toolName ?? null,
    releaseId: found.releaseId ?? null,
    leftOut: found.leftOut ?? 0,
    ...(payload ? { payload: { arguments: payload.arguments, result: payload.result } } : {}),
  };
}
