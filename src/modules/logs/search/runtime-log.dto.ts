import { ApiProperty } from '#api-docs';
import { IsIn, IsOptional, IsUUID } from 'class-validator';
import { IsOptionalText, IsWhole } from '../../../platform/http/input-values.js';
import { IsTime } from '../../../platform/http/time-text.js';
import { callerSchema, type CallerDto } from '../caller.types.js';
import { invocationOutcomes, type InvocationOutcome } from '../invocation.types.js';

export class InvocationFilterDto {
  /** Only invocations with this text in a message or an exception, ignoring case. At most 1,000 characters. */
  @IsOptionalText(1_000)
  search?: string;

  /** Only invocations with this outcome. */
  @IsOptional()
  @IsIn(invocationOutcomes)
  outcome?: InvocationOutcome;

  /** Only invocations of the tool with exactly this name. */
  @IsOptionalText(200)
  tool?: string;

  /** Only invocations of this MCP method, such as `tools/call`. */
  @IsOptionalText(200)
  method?: string;

  /** Only invocations that took at least this many milliseconds. */
  @IsWhole(0, 86_400_000)
  minDurationMs?: number;

  /** Only invocations of this caller: the name or id of an account, or the id of its key. */
  @IsOptionalText(255)
  caller?: string;

  /** Maximum number of invocations. */
  @IsWhole(1, 100)
  limit?: number = 20;
}

export class RuntimeLogQueryDto extends InvocationFilterDto {
  /** Only records from this time on: ISO 8601 or `YYYY-MM-DD HH:MM:SS`, UTC without a time zone. */
  @IsTime()
  from?: Date;

  /** Only records before this time. */
  @IsTime()
  to?: Date;

  /** Only invocations older than the one with this id: the last id of a page selects the next page. */
  @IsOptional()
  @IsUUID()
  before?: string;
}

export class InvocationRequestDto {
  /** The HTTP method; empty while it is unknown. */
  method: string;
  /** The URL without its query. */
  url: string;
}

export class InvocationResponseDto {
  /** The HTTP status; 0 while it is unknown. */
  @ApiProperty({ type: 'integer' })
  status: number;
  /**
   * `ok`: the server answered with a result. `toolError`: the tool answered with a result that has `isError: true`.
   * `rpcError`: the server answered with a JSON-RPC error. `exception`: it failed, or requires authorization. `canceled`:
   * the caller closed the request. `denied`: refused before the server was called. `exceededCpu`, `exceededMemory`,
   * `exceededWall`, `exceededResponse`: ended because it exceeded a limit. `responseStreamDisconnected`: the response ended
   * early. `unknown`: not known yet, or not reported by a server that runs elsewhere.
   */
  @ApiProperty({ enum: invocationOutcomes })
  outcome: InvocationOutcome;
}

export class InvocationDurationDto {
  @ApiProperty({ type: 'integer' })
  cpuMs: number;
  @ApiProperty({ type: 'integer' })
  wallMs: number;
}

export class InvocationLineDto {
  /** Time as `YYYY-MM-DD HH:MM:SS`, in UTC. */
  timestamp: string;
  /**
   * The same time with its zone and milliseconds.
   * @example '2026-11-20T10:15:00.123Z'
   */
  at: string;
  /** `debug`, `info`, `log`, `warn` or `error`; servers that run elsewhere may send others. */
  level: string;
  message: string;
}

export class InvocationExceptionDto {
  /** Time as `YYYY-MM-DD HH:MM:SS`, in UTC. */
  timestamp: string;
  /**
   * The same time with its zone and milliseconds.
   * @example '2026-11-20T10:15:00.123Z'
   */
  at: string;
  name: string;
  message: string;
}

/** JSON with redacted credentials. */
export class InvocationPayloadDto {
  arguments: string | null;
  result: string | null;
}

export class InvocationDto {
  id: string;
  /** Time of the request: `YYYY-MM-DD HH:MM:SS`, in UTC. */
  timestamp: string;
  /**
   * The same time with its zone and milliseconds.
   * @example '2026-11-20T10:15:00.123Z'
   */
  at: string;
  request: InvocationRequestDto;
  response: InvocationResponseDto;
  duration: InvocationDurationDto;
  logs: InvocationLineDto[];
  exceptions: InvocationExceptionDto[];
  /** The MCP method; null if it is unknown. */
  rpcMethod: string | null;
  /** The called tool; null for other methods. */
  tool: string | null;
  @ApiProperty(callerSchema)
  caller: CallerDto | null;
  /** The release that was current; null without one, and for records of a server that runs elsewhere. */
  releaseId: string | null;
  /** Number of lines and exceptions that were dropped because there were too many. */
  @ApiProperty({ type: 'integer' })
  leftOut: number;
  /** Arguments and result, only if the server's owner enabled this. */
  payload?: InvocationPayloadDto;
}

/** Invocations, newest first. */
export class RuntimeLogDto {
  invocations: InvocationDto[];
  /** Number of matches. With a filter other than time counted up to 10,000. */
  @ApiProperty({ type: 'integer' })
  total: number;
  /** False if there are more matches. */
  totalIsExact: boolean;
  /**
   * Number of invocations that were not stored, in the hours from `from` to `to` and whatever the other filters: the account
   * had used up its `logBytesPerDay`.
   */
  @ApiProperty({ type: 'integer' })
  leftOut: number;
}

export class AcceptedInvocationsDto {
  /** Number of accepted records; they are listed within seconds. */
  @ApiProperty({ type: 'integer' })
  accepted: number;
  /** Ids of the records, in the order of the request. */
  ids: string[];
}
