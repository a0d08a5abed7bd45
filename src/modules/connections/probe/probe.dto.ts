import { ApiProperty } from '#api-docs';
import { IsString, Length, Matches } from 'class-validator';
import { Omittable } from '../../../platform/http/input-values.js';
import { ClosedBody } from '../../../platform/http/input.pipe.js';
import { SERVER_NAME } from '../core/connection.dto.js';
import { connectionStates, statusReasons, type ConnectionState, type StatusReason } from '../core/connection-status.js';
import { AsGiven, IsHeaders, IsMcpUrl } from '../core/connection.validators.js';
import { ToolAnnotationsDto } from '../tools/connection-tools.dto.js';

/** What to probe: exactly one of `mcpUrl` and `server`. */
@ClosedBody()
export class ProbeBodyDto {
  /**
   * URL of an MCP server.
   * @example 'http://127.0.0.1:3001/mcp'
   */
  @Omittable()
  @IsMcpUrl()
  mcpUrl?: string;

  /** Qualified name of a registry server, such as `acme/weather`. */
  @Omittable()
  @IsString()
  @Length(1, 255)
  @Matches(SERVER_NAME, { message: 'server must be a qualified name such as acme/weather' })
  server?: string;

  /**
   * Headers sent to `mcpUrl` with every request. Neither stored nor returned nor logged.
   * @example { "X-Api-Key": "the key for the MCP server" }
   */
  @Omittable()
  @AsGiven()
  @IsHeaders()
  headers?: Record<string, string>;
}

export class ProbeLoginDto {
  /** `none`; `key`: a key or token in `header`; `oauth`: a person logs in at `host`. */
  @ApiProperty({ enum: ['none', 'key', 'oauth'] })
  kind: 'none' | 'key' | 'oauth';
  /** Header for the key, with `key`. */
  header?: string;
  /** Host of the authorization server, with `oauth`. Absent if none can be used. */
  host?: string;
}

/** A tool without its schemas. */
export class ProbeToolDto {
  /** @example 'echo' */
  name: string;
  title?: string;
  /** Description of the tool, at most 2,000 characters. */
  description?: string;
  annotations?: ToolAnnotationsDto;
}

export class ProbeDto {
  @ApiProperty({ enum: ['url', 'server'] })
  target: 'url' | 'server';
  /** State that a connection would have. `disconnected`: a registry server, which was not called. */
  @ApiProperty({ enum: connectionStates })
  state: ConnectionState;
  /** Reason that the status of a connection would have. */
  @ApiProperty({ enum: Object.keys(statusReasons) })
  reason: StatusReason;
  /** The result, as a message for people. */
  message: string;
  /** The next step, as a message for people. Null if there is nothing to do. */
  nextStep: string | null;
  /** Name that the server gives itself, or the qualified name of a registry server. Null if it is not known. */
  name: string | null;
  title: string | null;
  version: string | null;
  iconUrl: string | null;
  /** MCP revision of the session. */
  protocolVersion: string | null;
  /** The required login. Null if it is not known. */
  login: ProbeLoginDto | null;
  /** The first page of the tools, at most 1,000. Null if they are not known. */
  @ApiProperty({ type: [ProbeToolDto], nullable: true })
  tools: ProbeToolDto[] | null;
  /** True if the server has more tools. */
  hasMoreTools: boolean;
  /** JSON Schema of the values that a registry server wants. Null for a URL. */
  @ApiProperty({ type: 'object', additionalProperties: true, nullable: true })
  configSchema: Record<string, unknown> | null;
  /** The same address with `/mcp`, if this is an MCP endpoint and `mcpUrl` is not. Null otherwise. */
  didYouMean: string | null;
}

export const probeExample: ProbeDto = {
  target: 'url',
  state: 'connected',
  reason: 'ok',
  message: 'The server answers.',
  nextStep: null,
  name: 'everything',
  title: 'Everything',
  version: '1.0.0',
  iconUrl: null,
  protocolVersion: '2025-11-25',
  login: { kind: 'none' },
  tools: [{ name: 'echo', description: 'Gives the message back.', annotations: { readOnlyHint: true } }],
  hasMoreTools: false,
  configSchema: null,
  didYouMean: null,
};
