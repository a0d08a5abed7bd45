import { IsIn, IsOptional } from 'class-validator';
import { IsText, IsWhole } from '../../../platform/http/input-values.js';
import { IsTime } from '../../../platform/http/time-text.js';

export const outcomes = ['ok', 'exception', 'canceled', 'denied'] as const;

/** Which calls to show. Every filter given must match. */
export class ConnectionLogQueryDto {
  /** Calls shown at most. */
  @IsWhole(1, 100)
  limit?: number = 20;

  /** From this moment on: ISO 8601, UTC where no zone is given. */
  @IsTime()
  from?: Date;

  /** Before this moment. */
  @IsTime()
  to?: Date;

  /** Only calls in whose tool name, messages or exceptions this text occurs, in any case. */
  @IsOptional()
  @IsText(200)
  search?: string;

  /** Only calls that ended so: `ok`, `exception`, `canceled` or `denied`. */
  @IsOptional()
  @IsIn(outcomes)
  outcome?: (typeof outcomes)[number];

  /** Only calls of the tool with exactly this name. */
  @IsOptional()
  @IsText(200)
  tool?: string;
}

export class LoggedRequestDto {
  /** The HTTP method. */
  method: string;
  /** Without its query. */
  url: string;
}

export class LoggedResponseDto {
  /** The HTTP status. */
  status: number;
  /**
   * `ok`: the MCP server answered, be it with an error of its own. `exception`: it failed. `denied`: it was not asked, or
   * lacks what the connection's status names. `canceled`: the caller left.
   */
  outcome: string;
}

export class LoggedDurationDto {
  /** Always 0: the server computes elsewhere. */
  cpuMs: number;
  wallMs: number;
}

export class LoggedLineDto {
  timestamp: string;
  level: string;
  message: string;
}

export class LoggedExceptionDto {
  timestamp: string;
  name: string;
  message: string;
}

/** Where the time went, in milliseconds. Null where it is not known. */
export class LoggedTimingDto {
  /** Finding and judging the address. */
  guardMs: number | null;
  /** Waiting for a free socket, or for the session. */
  queueMs: number | null;
  /** Opening a socket; 0 when one was open. */
  connectMs: number | null;
  /** From sending the request to the first byte of the answer. */
  firstByteMs: number | null;
  totalMs: number;
}

/** One call of a connection. Arguments and results are not kept. */
export class ConnectionInvocationDto {
  id: string;
  /** `YYYY-MM-DD HH:MM:SS`, in UTC. */
  timestamp: string;
  request: LoggedRequestDto;
  response: LoggedResponseDto;
  duration: LoggedDurationDto;
  logs: LoggedLineDto[];
  exceptions: LoggedExceptionDto[];
  /** The MCP method; null when the message could not be read. */
  rpcMethod: string | null;
  /** The tool that was called; null for other methods. */
  tool: string | null;
  timing: LoggedTimingDto;
}

/** Newest first. */
export class ConnectionLogDto {
  invocations: ConnectionInvocationDto[];
  /** How many match, of the newest 1,000 of the last 7 days. */
  total: number;
}

/** A call that did not work, and says why. */
export const connectionLogExample = {
  invocations: [
    {
      id: '0b6f2c1e-7d0f-4d8e-9a57-4f8f3f1f6a10',
      timestamp: '2026-11-20 10:15:00',
      request: { method: 'POST', url: '/connect/acme/my-first/.tools/echo' },
      response: { status: 502, outcome: 'exception' },
      duration: { cpuMs: 0, wallMs: 3 },
      logs: [],
      exceptions: [
        {
          timestamp: '2026-11-20 10:15:00',
          name: 'UpstreamError',
          message: 'Nothing listens on 127.0.0.1:3001: is the server running, and is the port right?',
        },
      ],
      rpcMethod: 'tools/call',
      tool: 'echo',
      timing: { guardMs: 0.2, queueMs: 0, connectMs: 1.4, firstByteMs: null, totalMs: 3.1 },
    },
  ],
  total: 1,
};
