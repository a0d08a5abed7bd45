import { toTimeText } from '../../../platform/http/time-text.js';
import type { ConnectionLine } from './connection-line.entity.js';
import type { LoggedCall } from './call-record.js';
import type { ConnectionInvocationDto } from './connection-log.dto.js';

/** Lists every field that may leave the service. */
export function toInvocationDto(call: LoggedCall, lines: ConnectionLine[]): ConnectionInvocationDto {
  const timestamp = toTimeText(call.at);
  const { guardMs, queueMs, connectMs, firstByteMs, totalMs } = call;
  return {
    id: call.id,
    timestamp,
    request: { method: call.method, url: call.url },
    response: { status: call.status, outcome: call.outcome },
    duration: { cpuMs: 0, wallMs: Math.round(totalMs) },
    logs: lines.flatMap(({ at, level, message }) =>
      level === null ? [] : [{ timestamp: toTimeText(at), level, message }],
    ),
    exceptions: [
      ...(call.failureName === null ? [] : [{ timestamp, name: call.failureName, message: call.failureMessage ?? '' }]),
      ...lines.flatMap(({ at, name, message }) =>
        name === null ? [] : [{ timestamp: toTimeText(at), name, message }],
      ),
    ],
    rpcMethod: call.rpcMethod,
    tool: call.toolName,
    timing: { guardMs, queueMs, connectMs, firstByteMs, totalMs },
  };
}
