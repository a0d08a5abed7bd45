import { ApiExtraModels, ApiProperty, getSchemaPath } from '#api-docs';
import { IsPrintable, IsOptionalText, Omittable } from '../../platform/http/input-values.js';
import { SpelledBody } from '../../platform/http/input.pipe.js';
import { IsIn } from 'class-validator';
import { visibilities, type Visibility } from '../targets/target.types.js';
import { SuspendedDto } from '../auth/suspension.types.js';
import { bundleRuntimes, type BundleRuntime } from './server.types.js';

@SpelledBody()
export class CreateServerDto {
  /**
   * Display name, 1 to 255 characters. Default of a new server: its name.
   * @example 'Weather'
   */
  @Omittable()
  @IsPrintable(255, 1)
  displayName?: string;

  /**
   * Purpose of the server. Default of a new one: empty.
   * @example 'Forecasts for any place.'
   */
  @IsOptionalText(10_000)
  description?: string;

  /**
   * `private`: only the owner and grantees can find and call the server; everybody else receives 404. `restricted`: everybody
   * can find it, and only the owner and grantees can call it. The default of a new server is the service's
   * `DEFAULT_VISIBILITY`.
   * @example 'private'
   */
  @Omittable()
  @IsIn(visibilities)
  visibility?: Visibility;
}

/** A server as created in a namespace. Spec 2.8. */
export class ServerDto {
  /** @example 'acme' */
  namespace: string;
  /**
   * The part of the name after the slash; empty for a namespace-only server.
   * @example 'weather'
   */
  server: string;
  /** @example 'Weather' */
  displayName: string;
  /** @example 'Forecasts for any place.' */
  description: string;
  /** @example '2026-11-20T10:15:00.000Z' */
  createdAt: string;
}

export class DeletedServerDto {
  /** Always true. */
  success: boolean;
  /** @example 'acme' */
  namespace: string;
  /** @example 'weather' */
  server: string;
}

/** A server that is reached over the network. */
export class HttpServerConnectionDto {
  @ApiProperty({ enum: ['http'] })
  type: 'http';
  /**
   * The MCP address of the current release.
   * @example 'http://127.0.0.1:3000/run/acme--weather'
   */
  deploymentUrl: string;
  /** Configuration that callers send, as JSON Schema. */
  configSchema: Record<string, unknown>;
}

/** A server that runs on its user's machine. */
export class StdioServerConnectionDto {
  @ApiProperty({ enum: ['stdio'] })
  type: 'stdio';
  /**
   * Download URL of its bundle; needs no key for at least a day.
   * @example 'http://127.0.0.1:3000/servers/acme%2Fweather/download?expires=1795305600&signature=…'
   */
  bundleUrl: string;
  /** Runtime of the bundle. */
  @ApiProperty({ enum: bundleRuntimes })
  runtime: BundleRuntime;
  /** Configuration that callers send, as JSON Schema. */
  configSchema: Record<string, unknown>;
}

/** A warning about text that instructs a model as in known attacks. */
export class ServerWarningDto {
  /** Name of the tool; null for other parts, which the message names. */
  tool: string | null;
  /** The location, the found words and the reason. */
  @ApiProperty({
    example: `tool "add": Its description says "Do not mention it": it tells the model to keep something from its user. Read the whole text.`,
  })
  message: string;
}

/** Findings of the security check of a server. */
export interface ServerSecurity {
  scanPassed: boolean;
  warnings?: ServerWarningDto[];
}

export class ToolSummaryDto {
  /** @example 'get_forecast' */
  name: string;
  /** @example 'The forecast for a place.' */
  description: string | null;
  /** JSON Schema of its arguments, always of an object. */
  inputSchema: Record<string, unknown>;
  /** JSON Schema of its structured result. Absent when the tool declares none. */
  outputSchema?: Record<string, unknown>;
  /** True if clients refuse the tool or cannot check it, as `security.warnings` describes. Absent otherwise. */
  broken?: boolean;
}

export class ResourceSummaryDto {
  name: string;
  uri: string;
  description?: string;
  mimeType?: string;
}

export class PromptArgumentDto {
  name: string;
  description?: string;
  required?: boolean;
}

export class PromptSummaryDto {
  name: string;
  description?: string;
  arguments?: PromptArgumentDto[];
}

/** A server with its connections, tools and security status. Every member is present; null means unknown. Spec 2.3. */
@ApiExtraModels(HttpServerConnectionDto, StdioServerConnectionDto, ServerWarningDto)
export class ServerDetailDto {
  /** @example 'acme/weather' */
  qualifiedName: string;
  /** @example 'Weather' */
  displayName: string;
  /** @example 'Forecasts for any place.' */
  description: string;
  /** `private`: only its owner, and whom the owner grants it, find it. `restricted`: they call it, everybody finds it. */
  @ApiProperty({ enum: visibilities })
  visibility: Visibility;
  /** The suspension by the operator, of the connection or its namespace: calls are rejected. Absent otherwise. */
  suspended?: SuspendedDto;
  /** URL of the icon; needs no key for at least a day. */
  iconUrl: string | null;
  /** True when its current release is reached over the network. */
  remote: boolean;
  /** The MCP address of the current release; null for a bundle if this service does not run bundles. */
  deploymentUrl: string | null;
  /**
   * The connections of its current release: both kinds for a bundle that this service runs. Empty before the first release,
   * and for callers that cannot call a restricted server.
   */
  @ApiProperty({
    type: 'array',
    items: {
      oneOf: [HttpServerConnectionDto, StdioServerConnectionDto].map((model) => ({ $ref: getSchemaPath(model) })),
    },
  })
  connections: (HttpServerConnectionDto | StdioServerConnectionDto)[];
  /**
   * The release that calls reach; null before the first successful one.
   * @example '5b1d7a52-0c3e-4b57-8a39-1f3a4e2b8d11'
   */
  currentReleaseId: string | null;
  /** Null until a release was scanned, and for a bundle that was not run: only its manifest was checked. */
  @ApiProperty({
    type: 'object',
    nullable: true,
    selfRequired: true,
    required: ['scanPassed'],
    properties: {
      scanPassed: {
        type: 'boolean',
        description:
          'True if the newest scanned release passed the security check. Does not prove that the server is harmless.',
      },
      warnings: {
        type: 'array',
        items: { $ref: getSchemaPath(ServerWarningDto) },
        description:
          'At most 100 warnings: text of the current release to read before use, and its tools that clients refuse or cannot check. Absent without any, which proves nothing either.',
      },
    },
  })
  security: ServerSecurity | null;
  /** Null until a release was scanned. */
  tools: ToolSummaryDto[] | null;
  /** Null until a release was scanned. */
  resources: ResourceSummaryDto[] | null;
  /** Null until a release was scanned. */
  prompts: PromptSummaryDto[] | null;
}

/** A server whose current release is reached over the network. */
export const serverDetailExample = {
  qualifiedName: 'acme/weather',
  displayName: 'Weather',
  description: 'Forecasts for any place.',
  visibility: 'public',
  iconUrl: null,
  remote: true,
  deploymentUrl: 'http://127.0.0.1:3000/run/acme--weather',
  connections: [{ type: 'http', deploymentUrl: 'http://127.0.0.1:3000/run/acme--weather', configSchema: {} }],
  currentReleaseId: '5b1d7a52-0c3e-4b57-8a39-1f3a4e2b8d11',
  security: { scanPassed: true },
  tools: [
    {
      name: 'get_forecast',
      description: 'The forecast for a place.',
      inputSchema: { type: 'object', properties: { place: { type: 'string' } }, required: ['place'] },
    },
  ],
  resources: [],
  prompts: [],
};
