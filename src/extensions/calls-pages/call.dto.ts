import { ApiProperty } from '#api-docs';
import { IsIn, IsOptional, IsUUID } from 'class-validator';
import { IsFlag, IsPrintable, IsWhole, type InvocationOutcome } from '../../extension.js';
import { OUTCOMES, PERIODS } from './calls.page.js';

const outcomes = OUTCOMES.map(([value]) => value);
const periods = Object.keys(PERIODS) as (keyof typeof PERIODS)[];

/** Filters of the listed calls, all of which must match. */
export class CallsQueryDto {
  /** Only calls of this target: a connection (`namespace/connectionId`), a server or a namespace. */
  @IsOptional()
  @IsPrintable(500)
  target?: string;

  /** Only calls of this caller: the name or id of an account, or the id of its key or client authorization. */
  @IsOptional()
  @IsPrintable(500)
  account?: string;

  /** Only calls of the tool with exactly this name. */
  @IsOptional()
  @IsPrintable(500)
  tool?: string;

  /** Only calls with this outcome. */
  @ApiProperty({ enum: outcomes })
  @IsOptional()
  @IsIn(outcomes)
  outcome?: InvocationOutcome;

  /** Only calls of the last 24 hours, 7 days or 30 days. */
  @ApiProperty({ enum: periods })
  @IsOptional()
  @IsIn(periods)
  since?: keyof typeof PERIODS = '24h';

  /** Includes requests of the protocol itself, such as `initialize` and `tools/list`. */
  @IsFlag()
  all?: boolean = false;

  /** Calls per page. */
  @IsWhole(1, 100)
  limit?: number = 50;

  /** The `nextCursor` of the previous page. */
  @IsOptional()
  @IsUUID(undefined, { message: 'cursor must be the nextCursor of an earlier answer' })
  cursor?: string;
}

export class CallAccountDto {
  /** @example '4f1f2f54-8f8c-4a8e-9d0e-3c1f1b0a2d11' */
  id: string;
  /**
   * Null after the deletion of the account.
   * @example 'carol'
   */
  name: string | null;
}

export class CallCredentialDto {
  /** @example '0b5c7f7e-6c0f-4a77-9d5c-2f5b8d3f6a10' */
  id: string | null;
  @ApiProperty({ type: String, enum: ['key', 'oauth', 'session'], nullable: true })
  kind: 'key' | 'oauth' | 'session' | null;
  /**
   * Name of the API key or the app; null after its revocation, and for a session.
   * @example 'laptop'
   */
  name: string | null;
}

export class CallCallerDto {
  account: CallAccountDto;
  credential: CallCredentialDto;
  /**
   * The name that the MCP client gave itself; null if it gave none, and for REST.
   * @example 'cursor'
   */
  client: string | null;
}

export class CallExceptionDto {
  /** @example 'UpstreamError' */
  name: string;
  /** @example 'The MCP server did not respond within 60 s.' */
  message: string;
}

export class CallDto {
  /** @example '019a7c9e-6679-7425-90de-944b07fc1f90' */
  id: string;
  /** @example '2026-11-29T10:15:00.123Z' */
  at: string;
  @ApiProperty({ enum: ['connection', 'server'] })
  kind: 'connection' | 'server';
  /**
   * `namespace/connectionId`, or the qualified name of the server.
   * @example 'acme/weather'
   */
  target: string;
  /**
   * The called tool; null for other methods.
   * @example 'forecast'
   */
  tool: string | null;
  /**
   * The MCP method; null if the message could not be parsed.
   * @example 'tools/call'
   */
  method: string | null;
  @ApiProperty({ enum: outcomes, example: 'ok' })
  outcome: InvocationOutcome;
  /** @example 42 */
  durationMs: number;
  /** Null for requests of Slipway itself. */
  @ApiProperty({ type: CallCallerDto, nullable: true })
  caller: CallCallerDto | null;
  /** Empty if the caller cannot read the whole log of the connection. */
  exceptions: CallExceptionDto[];
}

/** Calls, newest first. A page of a long period can have fewer calls than `limit`: continue until `nextCursor` is null. */
export class CallListDto {
  calls: CallDto[];
  /** The `cursor` of the next page; null on the last one. */
  nextCursor: string | null;
}
