import { IsOptional, IsString, Matches, MaxLength } from 'class-validator';

/** What Postgres can store: no NUL, no lone surrogates. */
const STORABLE = /^[^\0\p{Cs}]*$/u;

export class CreateServerDto {
  /**
   * Shown to people. Default: the server's name.
   * @example 'Weather'
   */
  @IsOptional()
  @IsString()
  @MaxLength(255)
  @Matches(STORABLE, { message: 'displayName must not hold NUL characters or broken unicode' })
  displayName?: string;

  /**
   * What the server is good for. Default: empty.
   * @example 'Forecasts for any place.'
   */
  @IsOptional()
  @IsString()
  @MaxLength(10_000)
  @Matches(STORABLE, { message: 'description must not hold NUL characters or broken unicode' })
  description?: string;
}

/** A server as created in a namespace. Spec 2.8. */
export class ServerDto {
  /** @example 'acme' */
  namespace: string;
  /**
   * The part behind the slash; empty for a namespace-only server.
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

/** How to connect to a server. */
export class ServerConnectionDto {
  /** `http` or `stdio`. */
  type: string;
  /** Where the bundle of a `stdio` server is downloaded. */
  bundleUrl?: string;
  /** What must be configured, as JSON Schema. */
  configSchema: Record<string, unknown>;
}

export class ServerSecurityDto {
  /** Whether the newest scanned release passed the security check. */
  scanPassed: boolean;
}

export class ToolSummaryDto {
  name: string;
  description: string | null;
  inputSchema: Record<string, unknown>;
  outputSchema?: Record<string, unknown>;
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

/** Everything about a server. Every key is present; null means there is nothing yet. Spec 2.3. */
export class ServerDetailDto {
  /** @example 'acme/weather' */
  qualifiedName: string;
  /** @example 'Weather' */
  displayName: string;
  /** @example 'Forecasts for any place.' */
  description: string;
  iconUrl: string | null;
  /** True when its current release is reached over the network. */
  remote: boolean;
  /** The MCP address of the current release. */
  deploymentUrl: string | null;
  connections: ServerConnectionDto[];
  security: ServerSecurityDto | null;
  /** Null until a release was scanned. */
  tools: ToolSummaryDto[] | null;
  /** Null until a release was scanned. */
  resources: ResourceSummaryDto[] | null;
  /** Null until a release was scanned. */
  prompts: PromptSummaryDto[] | null;
}
