import { Injectable } from '@nestjs/common';
import type { Caller, OwnedNamespace } from '../../auth/access.types.js';
import { ConnectionCallsService } from '../../logs/connection-calls.service.js';
import { ConnectionReader } from '../core/connection-reader.js';
import type { ConnectionLogDto, ConnectionLogQueryDto, ConnectionInvocationDto } from './connection-log.dto.js';
import { isGuest } from '../../../platform/http/revocation-registry.js';
import { timesOf } from '../../../platform/http/time-text.js';
import { toCallerDto } from '../../logs/caller.types.js';
import type { FoundCall } from '../../logs/invocation.types.js';

const UNKNOWN = { guardMs: null, queueMs: null, connectMs: null, firstByteMs: null, totalMs: 0 };

@Injectable()
export class ConnectionLogService {
  constructor(
    private readonly connectionReader: ConnectionReader,
    private readonly connectionCallsService: ConnectionCallsService,
  ) {}

  /**
   * Lists calls. A caller with the level `call` reads only its own calls, over all its keys, apps and browsers, without console output and failure
   * messages, which can contain content and addresses of the MCP server.
   *
   * @throws ResourceNotFoundError, and the errors of `ConnectionCallsService.find`
   */
  async list(
    namespace: OwnedNamespace,
    connectionId: string,
    { limit = 20, ...query }: ConnectionLogQueryDto,
    { accountId, grant }: Caller,
  ): Promise<ConnectionLogDto> {
    const { id } = await this.connectionReader.find(namespace, connectionId);
    if (isGuest(grant)) {
      const { calls, total } = await this.connectionCallsService.find(id, { ...query, account: accountId }, limit);
      const ownCalls = calls.map((call) => ({ ...call, lines: [], exceptions: [] }));
      return { invocations: ownCalls.map(toConnectionInvocationDto), total, leftOut: 0 };
    }
    const { calls, total, leftOut } = await this.connectionCallsService.find(id, query, limit);
    return { invocations: calls.map(toConnectionInvocationDto), total, leftOut };
  }
}

/** Copies fields by name, so that no other field is returned. */
function toConnectionInvocationDto(call: FoundCall): ConnectionInvocationDto {
  const { guardMs, queueMs, connectMs, firstByteMs, totalMs } = call.timing ?? UNKNOWN;
  return {
    id: call.id,
    ...timesOf(call.at ?? 0),
    request: { method: call.method ?? '', url: call.url ?? '' },
    response: { status: call.status ?? 0, outcome: call.outcome ?? 'unknown' },
    duration: { cpuMs: 0, wallMs: Math.round(totalMs) },
    logs: call.lines.map(({ at, level, message }) => ({ ...timesOf(at), level, message })),
    exceptions: call.exceptions.map(({ at, name, message }) => ({ ...timesOf(at), name, message })),
    rpcMethod: call.rpcMethod ?? null,
    tool: call.toolName ?? null,
    caller: toCallerDto(call.caller),
    timing: { guardMs, queueMs, connectMs, firstByteMs, totalMs },
  };
}
