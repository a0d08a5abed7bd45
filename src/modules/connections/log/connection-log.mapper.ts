import { toTimeText } from '../../../platform/http/time-text.js';
import type { FoundCall } from '../../logs/invocation.types.js';
import type { ConnectionInvocationDto } from './connection-log.dto.js';

const UNKNOWN = { guardMs: null, queueMs: null, connectMs: null, firstByteMs: null, totalMs: 0 };

const textOf = (at: number): string => toTimeText(new Date(at));

/** Lists every field the answer may contain. */
export function toConnectionInvocationDto(call: FoundCall): ConnectionInvocationDto {
  const { guardMs, queueMs, connectMs, firstByteMs, totalMs } = call.timing ?? UNKNOWN;
  return {
    id: call.id,
    timestamp: textOf(call.at ?? 0),
    request: { method: call.method ?? '', url: call.url ?? '' },
    response: { status: call.status ?? 0, outcome: call.outcome ?? 'unknown' },
    duration: { cpuMs: 0, wallMs: Math.round(totalMs) },
    logs: call.lines.map(({ at, level, message }) => ({ timestamp: textOf(at), level, message })),
    exceptions: call.exceptions.map(({ at, name, message }) => ({ timestamp: textOf(at), name, message })),
    rpcMethod: call.rpcMethod ?? null,
    tool: call.toolName ?? null,
    timing: { guardMs, queueMs, connectMs, firstByteMs, totalMs },
  };
}
