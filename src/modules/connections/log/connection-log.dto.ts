import { ApiProperty } from '#api-docs';
import { IsIn, IsOptional } from 'class-validator';
import { IsOptionalText, IsWhole } from '../../../platform/http/input-values.js';
import { IsTime } from '../../../platform/http/time-text.js';
import { callerExample, callerSchema, type CallerDto } from '../../logs/caller.types.js';

export const outcomes = ['ok', 'toolError', 'rpcError', 'exception', 'canceled', 'denied'] as const;

export class ConnectionLogQueryDto {
  /** Maximum number of calls. */
  @IsWhole(1, 100)
  limit?: number = 20;

  /** Only calls from this time on: ISO 8601, UTC without a time zone. */
  @IsTime()
  from?: Date;

  /** Only records before this time. */
  @IsTime()
  to?: Date;

  /** Only calls with this text in the tool name, a message or an exception, ignoring case. */
  @IsOptionalText(1_000)
  search?: string;

  /** Only calls with this outcome. */
  @IsOptional()
  @IsIn(outcomes)
  outcome?: (typeof outcomes)[number];

  /** Only calls of the tool with exactly this name. */
  @IsOptionalText(200)
  tool?: string;

  /** Only calls of this caller: the name or id of an account, or the id of its key. */
  @IsOptionalText(255)
  caller?: string;
}

export class LoggedRequestDto {
  /** The HTTP method. */
  method: string;
  /** The URL without its query. */
  url: string;
}

export class LoggedResponseDto {
  /** The HTTP status. */
  status: number;
  /**
   * `ok`: the MCP server answered with a result. `toolError`: the tool answered with a result that has `isError: true`.
   * `rpcError`: the MCP server answered with a JSON-RPC error. `exception`: it failed. `denied`: refused before the MCP
   * server was called, or for a reason the connection's status names. `canceled`: the caller closed the request.
   * `unknown`: the call was recorded without its end.
   */
  @ApiProperty({ enum: [...outcomes, 'unknown'] })
  outcome: string;
}

export class LoggedDurationDto {
  /** CPU time, always 0: Slipway does not measure that of the MCP server. */
  cpuMs: number;
  wallMs: number;
}

export class LoggedLineDto {
  timestamp: string;
  /**
   * The same time with its zone and milliseconds.
   * @example '2026-11-20T10:15:00.123Z'
   */
  at: string;
  level: string;
  message: string;
}

export class LoggedExceptionDto {
  timestamp: string;
  /**
   * The same time with its zone and milliseconds.
   * @example '2026-11-20T10:15:00.123Z'
   */
  at: string;
  name: string;
  message: string;
}

/** Durations in milliseconds; null if unknown. */
export class LoggedTimingDto {
  /** Time to resolve and check the address. */
  guardMs: number | null;
  /** Time of waiting for a socket or for the session. */
  queueMs: number | null;
  /** Time to open a socket; 0 if one was open. */
  connectMs: number | null;
  /** Time from sending the request to the first byte of the response. */
  firstByteMs: number | null;
  totalMs: number;
}

/** A recorded request, without arguments and result. */
export class ConnectionInvocationDto {
  id: string;
  /** Time as `YYYY-MM-DD HH:MM:SS`, in UTC. */
  timestamp: string;
  /**
   * The same time with its zone and milliseconds.
   * @example '2026-11-20T10:15:00.123Z'
   */
  at: string;
  request: LoggedRequestDto;
  response: LoggedResponseDto;
  duration: LoggedDurationDto;
  logs: LoggedLineDto[];
  exceptions: LoggedExceptionDto[];
  /** The MCP method; null if the message could not be parsed. */
  rpcMethod: string | null;
  /** The called tool; null for other methods. */
  tool: string | null;
  @ApiProperty(callerSchema)
  caller: CallerDto | null;
  timing: LoggedTimingDto;
}

/** Recorded requests, newest first. */
export class ConnectionLogDto {
  invocations: ConnectionInvocationDto[];
  /** Number of matching calls among the newest 1,000. */
  total: number;
  /** Number of calls in the range that were not recorded, since there were too many of them, as far as those calls reach. */
  leftOut: number;
}

export const connectionLogExample = {
  invocations: [
    {
      id: '0b6f2c1e-7d0f-4d8e-9a57-4f8f3f1f6a10',
      timestamp: '2026-11-20 10:15:00',
      at: '2026-11-20T10:15:00.123Z',
      request: { method: 'POST', url: '/connect/acme/my-first/.tools/echo' },
      response: { status: 502, outcome: 'exception' },
      duration: { cpuMs: 0, wallMs: 3 },
      logs: [],
      exceptions: [
        {
          timestamp: '2026-11-20 10:15:00',
          at: '2026-11-20T10:15:00.123Z',
          name: 'UpstreamError',
          message: 'Nothing listens on 127.0.0.1:3001: is the server running, and is the port right?',
        },
      ],
      rpcMethod: 'tools/call',
      tool: 'echo',
      caller: callerExample,
      timing: { guardMs: 0.2, queueMs: 0, connectMs: 1.4, firstByteMs: null, totalMs: 3.1 },
    },
  ],
  total: 1,
  leftOut: 0,
};
