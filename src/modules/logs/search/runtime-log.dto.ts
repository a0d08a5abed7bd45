import { ApiProperty } from '@nestjs/swagger';
import { IsIn, IsOptional, IsUUID } from 'class-validator';
import { IsText, IsWhole } from '../../../platform/http/input-values.js';
import { IsTime } from '../../../platform/http/time-text.js';
import { invocationOutcomes, type InvocationOutcome } from '../invocation.types.js';

/** Which invocations to show. Every filter given must match. */
export class InvocationFilterDto {
  /** Only invocations in whose messages or exceptions this text occurs, in any case. */
  @IsOptional()
  @IsText(200)
  search?: string;

  /** Only invocations that ended so. */
  @IsOptional()
  @IsIn(invocationOutcomes)
  outcome?: InvocationOutcome;

  /** Only invocations of the tool with exactly this name. */
  @IsOptional()
  @IsText(200)
  tool?: string;

  /** Only invocations of this MCP method, such as `tools/call`. */
  @IsOptional()
  @IsText(200)
  method?: string;

  /** Only invocations that took at least so many milliseconds. */
  @IsWhole(0, 86_400_000)
  minDurationMs?: number;

  /** Invocations shown at most. */
  @IsWhole(1, 100)
  limit?: number = 20;
}

/** Which invocations to show. Every filter given must match. */
export class RuntimeLogQueryDto extends InvocationFilterDto {
  /** From this moment on: ISO 8601 or `YYYY-MM-DD HH:MM:SS`, UTC where no zone is given. */
  @IsTime()
  from?: Date;

  /** Before this moment. */
  @IsTime()
  to?: Date;

  /** Only invocations older than the one with this id: the last one of a page leads to the next. */
  @IsOptional()
  @IsUUID()
  before?: string;
}

export class InvocationRequestDto {
  /** The HTTP method; empty while it is not known. */
  method: string;
  /** Without its query. */
  url: string;
}

export class InvocationResponseDto {
  /** The HTTP status; 0 while it is not known. */
  @ApiProperty({ type: 'integer' })
  status: number;
  /**
   * `ok`: the server answered, be it with an error of its own. `exception`: it failed, or wants authorization.
   * `canceled`: the caller left. `denied`: the server was not asked. `exceededCpu`, `exceededMemory`, `exceededWall`,
   * `exceededResponse`: it took more than it may and was ended. `responseStreamDisconnected`: its answer broke off.
   * `unknown`: not known yet, or a server elsewhere did not say.
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
  /** `YYYY-MM-DD HH:MM:SS`, in UTC. */
  timestamp: string;
  /** `debug`, `info`, `log`, `warn` or `error`; servers elsewhere may have others. */
  level: string;
  message: string;
}

export class InvocationExceptionDto {
  /** `YYYY-MM-DD HH:MM:SS`, in UTC. */
  timestamp: string;
  name: string;
  message: string;
}

/** Arguments and result of a call as JSON text, without credentials. */
export class InvocationPayloadDto {
  arguments: string | null;
  result: string | null;
}

/** One request to a server, with what it wrote and threw. */
export class InvocationDto {
  id: string;
  /** When the request came: `YYYY-MM-DD HH:MM:SS`, in UTC. */
  timestamp: string;
  request: InvocationRequestDto;
  response: InvocationResponseDto;
  duration: InvocationDurationDto;
  logs: InvocationLineDto[];
  exceptions: InvocationExceptionDto[];
  /** The MCP method; null when it is not known. */
  rpcMethod: string | null;
  /** The tool that was called; null for other methods. */
  tool: string | null;
  /** The release that was current; null when none was, or for a server that runs elsewhere. */
  releaseId: string | null;
  /** Lines and exceptions that were not kept: there were too many. */
  @ApiProperty({ type: 'integer' })
  leftOut: number;
  /** Only where the server's owner has them kept. */
  payload?: InvocationPayloadDto;
}

/** Newest first. */
export class RuntimeLogDto {
  invocations: InvocationDto[];
  /** How many match, counted up to 1,000. */
  @ApiProperty({ type: 'integer' })
  total: number;
  /** False when more match than are counted. */
  totalIsExact: boolean;
}

/** What became of records that were sent. */
export class AcceptedInvocationsDto {
  /** Records that were taken; they are shown within seconds. */
  @ApiProperty({ type: 'integer' })
  accepted: number;
  /** The ids they are kept under, in the order of the request. */
  ids: string[];
}
