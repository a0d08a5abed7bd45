import { ApiAdditionalProperties } from '../../../platform/http/api-docs.decorators.js';
import { IsPrintable, IsWhole, Omittable } from '../../../platform/http/input-values.js';
import { ApiProperty, type ApiPropertyOptions } from '#api-docs';
import { Type } from 'class-transformer';
import {
  IsBoolean,
  IsIn,
  IsInt,
  IsObject,
  IsOptional,
  IsString,
  Length,
  Matches,
  Max,
  MaxLength,
  Min,
  ValidateNested,
} from 'class-validator';
import { ClosedBody } from '../../../platform/http/input.pipe.js';
import { SuspendedDto } from '../../auth/suspension.types.js';
import { connectionStates, statusReasons, type ConnectionState } from './connection-status.js';
import {
  AsGiven,
  IsHeaders,
  IsMcpUrl,
  IsMetadata,
  IsScopes,
  IsStorableText,
  IsToolPatterns,
} from './connection.validators.js';

export const SERVER_NAME = /^@?[a-zA-Z0-9][a-zA-Z0-9_-]*(?:\/[a-zA-Z0-9][a-zA-Z0-9_-]*)?$/;

const transports = ['http', 'uplink'] as const;

type Transport = (typeof transports)[number];

@ApiAdditionalProperties(false)
export class MockDto {
  @IsBoolean()
  enabled: boolean;

  /**
   * The answers of the tools. A JSON object with `tools` is a fixture; `replay:{connectionId}` replays a recording;
   * `fail:{state}` fails like a connection in the state `auth_required`, `input_required`, `429` or `502`; any other text is
   * read by the language model, if the service has one.
   */
  @Omittable()
  @IsString()
  @MaxLength(10_000)
  @IsStorableText()
  scenario?: string;
}

/** The tools that a connection offers to its callers: exact names, or `prefix*`. */
@ApiAdditionalProperties(false)
export class ToolsDto {
  /**
   * The only offered tools. Absent: all.
   * @example ['search_*', 'read_file']
   */
  @Omittable()
  @IsToolPatterns()
  allow?: string[];

  /**
   * Tools that are not offered, even if `allow` contains them.
   * @example ['search_private']
   */
  @Omittable()
  @IsToolPatterns()
  deny?: string[];
}

@ApiAdditionalProperties(false)
export class OAuthChoiceDto {
  /**
   * The authorization server, even if the MCP server names another one or its metadata names another issuer. Absent: the
   * authorization server that the MCP server names.
   * @example 'https://login.example.com/tenant'
   */
  @Omittable()
  @IsMcpUrl()
  issuer?: string;

  /** A client that was registered there manually. Absent: Slipway registers a client, or the setup page requests one. */
  @Omittable()
  @Matches(/^[\x20-\x7e]{1,2000}$/, { message: 'clientId must be 1 to 2000 visible ASCII characters' })
  clientId?: string;

  /** The requested scopes. Absent: those that the MCP server names. */
  @ApiProperty({ type: [String], example: ['tools:read'] })
  @Omittable()
  @IsScopes()
  scopes?: string[];
}

@ApiAdditionalProperties(false)
export class SetOAuthDto extends OAuthChoiceDto {
  /**
   * The secret of `clientId`. Stored encrypted, never returned, and sent to the token endpoint only. Absent: the secret of the
   * same client and issuer remains. Null: no secret.
   */
  @ApiProperty({ type: String, nullable: true })
  @IsOptional()
  @Matches(/^[\x20-\x7e]{1,2000}$/, { message: 'clientSecret must be 1 to 2000 visible ASCII characters' })
  clientSecret?: string | null;
}

export const newConnectionExample = {
  mcpUrl: 'http://127.0.0.1:3001/mcp',
  name: 'My first connection',
  metadata: { userId: 'u-1' },
};

const source: ApiPropertyOptions = {
  type: 'object',
  additionalProperties: false,
  required: ['kind', 'entrypoint', 'sourceFiles'],
  selfRequired: false,
  properties: {
    kind: { type: 'string', enum: ['module'] },
    entrypoint: { type: 'string', description: 'The path of the file.', example: 'server.ts' },
    sourceFiles: {
      type: 'array',
      minItems: 1,
      maxItems: 1,
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['path', 'contents'],
        properties: {
          path: { type: 'string', description: 'The same as `entrypoint`.', example: 'server.ts' },
          contents: { type: 'string', description: 'Its text.' },
        },
      },
    },
  },
};

/** The target of a connection and its settings. Exactly one of `mcpUrl`, `server` and `source` for `http`; none for `uplink`. */
@ClosedBody()
export class SetConnectionDto {
  /** `http` (default), or `uplink` for a local server paired over the command line tool. */
  @Omittable()
  @IsIn(transports)
  transport?: Transport;

  /**
   * URL of the MCP server.
   * @example 'http://127.0.0.1:3001/mcp'
   */
  @Omittable()
  @IsMcpUrl()
  mcpUrl?: string;

  /** Qualified name of a registry server, such as `acme/weather`. The connection follows it to later releases. */
  @Omittable()
  @IsString()
  @Length(1, 255)
  @Matches(SERVER_NAME, { message: 'server must be a qualified name such as acme/weather' })
  server?: string;

  /**
   * A server module: one TypeScript file of at most 128 KB that imports Node built-ins, `zod` and
   * `@modelcontextprotocol/sdk`. Slipway compiles and loads it immediately and rejects a module that fails with
   * 400 `invalid_module` and the position of the error.
   */
  @ApiProperty(source)
  @Omittable()
  @AsGiven()
  @IsObject()
  source?: Record<string, unknown>;

  /**
   * Display name, 1 to 255 characters. Default: the connection id.
   * @example 'My first connection'
   */
  @Omittable()
  @IsPrintable(255, 1)
  name?: string;

  /**
   * Your own data, for filtering lists: at most 16 KB of JSON.
   * @example { "userId": "u-1" }
   */
  @Omittable()
  @AsGiven()
  @IsMetadata()
  metadata?: Record<string, unknown>;

  /**
   * Headers sent to the MCP server with every request. Stored encrypted, never returned.
   * @example { "X-Api-Key": "the key for the MCP server" }
   */
  @Omittable()
  @AsGiven()
  @IsHeaders()
  headers?: Record<string, string>;

  /**
   * The tools that the connection offers. A tool that is not offered is not listed, and calls of it fail like calls of an
   * unknown tool. `{}` offers all tools again. The choice applies to this connection only: while its server is public, or granted
   * to an account, the server's run endpoint offers all tools. An extension of Slipway.
   */
  @Omittable()
  @IsObject()
  @ValidateNested()
  @Type(() => ToolsDto)
  tools?: ToolsDto;

  /**
   * Silence of the MCP server, in milliseconds, after which a call at an MCP endpoint fails. Each message of the call restarts
   * it, up to an hour in all. Null for the default of the service, `MCP_CALL_TIMEOUT_MS`. REST calls have their own limit. An
   * extension of Slipway.
   * @example 600000
   */
  @ApiProperty({ type: 'integer', minimum: 100, maximum: 3_600_000, nullable: true })
  @IsOptional()
  @IsInt()
  @Min(100)
  @Max(3_600_000)
  callTimeoutMs?: number | null;

  /**
   * Settings of the login at an authorization server whose metadata are incomplete. Null removes them. Only the owner of the
   * namespace can send this field, whatever the grants. An extension of Slipway.
   */
  @ApiProperty({ type: SetOAuthDto, nullable: true })
  @IsOptional()
  @IsObject()
  @ValidateNested()
  @Type(() => SetOAuthDto)
  oauth?: SetOAuthDto | null;

  /**
   * Simulates the server: Slipway replies to calls itself, and they never reach the server. Registry servers only. Set at
   * creation: a later PUT with another `mock` returns 200 and leaves `mock` unchanged.
   */
  @Omittable()
  @IsObject()
  @ValidateNested()
  @Type(() => MockDto)
  mock?: MockDto;
}

export class InputFieldDto {
  label: string;
  description?: string;
  required?: boolean;
}

export class ConnectionStatusDto {
  /**
   * `connected`, `disconnected`, `auth_required`, `input_required` or `error`.
   * @example 'connected'
   */
  @ApiProperty({ enum: connectionStates })
  state: string;
  /**
   * The reason, as a stable code.
   * @example 'ok'
   */
  @ApiProperty({ enum: Object.keys(statusReasons) })
  reason: string;
  /** The observation. Absent while connected. */
  message?: string;
  /** The advice for the user. Absent while connected. */
  nextStep?: string;
  /**
   * A page where a person authorizes the connection or enters missing values. The link expires when it is used or
   * values change, and with the key that read it. Absent for callers that cannot manage the connection, by their account or their key.
   */
  setupUrl?: string;
  /** The same as `setupUrl`, under its older name. */
  authorizationUrl?: string;
  /** The values that the server requires, by the place where they are sent: `{headers?, query?}` by name. With `input_required`. */
  http?: { headers?: Record<string, InputFieldDto>; query?: Record<string, InputFieldDto> };
  /** Names of the missing values, with `input_required`. */
  missing?: { headers: string[]; query: string[] };
  /**
   * Time at which this state began.
   * @example '2026-11-20T10:15:00.000Z'
   */
  since: string;
  /** The last good round trip. Absent before the first. */
  lastOkAt?: string;
}

@ApiAdditionalProperties(true)
export class ServerIconDto {
  src: string;
  mimeType?: string;
  sizes?: string[];
}

/** A JSON Schema of an object. */
@ApiAdditionalProperties(true)
export class ObjectSchemaDto {
  /** Type of the schema, always `object`. */
  type: string;
  properties?: Record<string, unknown>;
  required?: string[];
}

export class ServerInfoDto {
  /** @example 'echo-server' */
  name: string;
  /** @example '1.0.0' */
  version: string;
  title?: string;
  icons?: ServerIconDto[];
  websiteUrl?: string;
  description?: string;
}

export const connectionExample = {
  connectionId: 'my-first',
  ...newConnectionExample,
  transport: 'http',
  iconUrl: null,
  createdAt: '2026-11-20T10:15:00.000Z',
  status: { state: 'connected', reason: 'ok', since: '2026-11-20T10:15:00.000Z', lastOkAt: '2026-11-20T10:15:00.000Z' },
  serverInfo: { name: 'mcp-servers/everything', title: 'Everything Reference Server', version: '2.0.0' },
};

/** A connection, without its headers (Spec 2.1). */
export class ConnectionDto {
  /** @example 'my-first' */
  connectionId: string;
  /** @example 'My first connection' */
  name: string;
  /**
   * URL of the MCP server, with `***` instead of the values of its query. Null for an uplink, for a source, and for callers with
   * the level `call`.
   * @example 'http://127.0.0.1:3001/mcp'
   */
  mcpUrl: string | null;
  /**
   * Metadata of the connection; empty for callers with the level `call`.
   * @example { "userId": "u-1" }
   */
  metadata: Record<string, unknown>;
  @ApiProperty({ enum: transports })
  transport: Transport;
  /** The offered tools. Absent while the connection offers all tools. */
  tools?: ToolsDto;
  /** Timeout in milliseconds. Absent while the default of the service applies. */
  callTimeoutMs?: number;
  /** The owner's choices for the login, without the secret. Absent without any. */
  oauth?: OAuthChoiceDto;
  /** The simulation. Absent unless the connection is simulated. */
  mock?: MockDto;
  iconUrl: string | null;
  /** @example '2026-11-20T10:15:00.000Z' */
  createdAt: string;
  /** The suspension by the operator, of the connection or its namespace: calls are rejected. Absent otherwise. */
  suspended?: SuspendedDto;
  status: ConnectionStatusDto;
  /** Name and version of the MCP server. Absent before the first round trip. */
  serverInfo?: ServerInfoDto;
}

export class ConnectionListDto {
  connections: ConnectionDto[];
  /** The `cursor` of the next page; null on the last one. */
  nextCursor: string | null;
}

export class ConnectionQueryDto {
  /** Connections per page. */
  @IsWhole(1, 100)
  limit?: number = 100;

  /** The `nextCursor` of the previous page. */
  @IsOptional()
  @IsString()
  cursor?: string;

  /** Only connections with exactly this name. */
  @IsOptional()
  @IsString()
  @MaxLength(255)
  @IsStorableText()
  name?: string;

  /** Only connections to exactly this URL. */
  @IsOptional()
  @IsString()
  @MaxLength(2048)
  @IsStorableText()
  mcpUrl?: string;

  /** Only connections to this server of the registry, by its qualified name. */
  @IsOptional()
  @IsString()
  @MaxLength(255)
  @IsStorableText()
  server?: string;

  /** Only connections whose last observed state is this one. */
  @IsOptional()
  @IsIn(connectionStates)
  state?: ConnectionState;
}
