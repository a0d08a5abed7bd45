import { ApiProperty } from '#api-docs';
import { Type } from 'class-transformer';
import { IsOptionalText, STORABLE } from '../../../platform/http/input-values.js';
import {
  ArrayMaxSize,
  IsArray,
  IsBoolean,
  IsIn,
  IsObject,
  IsOptional,
  IsString,
  Matches,
  MaxLength,
  ValidateNested,
} from 'class-validator';
import { visibilities, type Visibility } from '../../targets/target.types.js';
import { bundleRuntimes, type BundleRuntime } from '../../servers/server.types.js';

/** Source of the release. */
export class ReleaseSourceDto {
  /** @example '8f2d1c0' */
  @IsOptionalText(200)
  commit?: string;

  /** @example 'Forecasts for tomorrow' */
  @IsOptionalText(10_000)
  commitMessage?: string;

  /** @example 'main' */
  @IsOptionalText(255)
  branch?: string;
}

/** Members of every kind of release. Unknown members are ignored, since published tools send more. */
export abstract class PublishPayloadDto {
  @ApiProperty({ enum: ['external', 'hosted', 'stdio'] })
  @IsString()
  type: string;

  /** JSON Schema of the values that callers configure. Other values are not passed on to the server. */
  @IsOptional()
  @IsObject()
  configSchema?: Record<string, unknown>;

  /** Changes the visibility of the server, as `PATCH /servers/{qualifiedName}` does. Default: unchanged. */
  @IsOptional()
  @ApiProperty({ enum: visibilities, required: false })
  @IsIn(visibilities)
  visibility?: Visibility;

  /** Source of the release. */
  @IsOptional()
  @IsObject()
  @ValidateNested()
  @Type(() => ReleaseSourceDto)
  source?: ReleaseSourceDto;
}

/** A server that runs elsewhere. */
export class ExternalPayloadDto extends PublishPayloadDto {
  /**
   * URL of the MCP endpoint.
   * @example 'https://weather.example.com/mcp'
   */
  @IsString()
  @MaxLength(2_048)
  upstreamUrl: string;

  /**
   * Values the scan needs. A property of the configSchema goes where its `x-to` says, without one where its `x-from` says,
   * else into the query; any other value into a header of its name. Deleted after the scan.
   */
  @IsOptional()
  @IsObject()
  scanCredentials?: Record<string, string>;
}

/** A JavaScript module that Slipway runs. */
export class HostedPayloadDto extends PublishPayloadDto {
  /** True for a session for each client, stored on disk. An export `stateful` of the module takes precedence. */
  @IsOptional()
  @IsBoolean()
  stateful?: boolean = false;

  /** True if the module exports `createAuthAdapter`. The real exports decide. */
  @IsOptional()
  @IsBoolean()
  hasAuthAdapter?: boolean = false;

  /** Names of the server's secrets that the module may read; none means all. */
  @IsOptional()
  @IsArray()
  @ArrayMaxSize(100)
  @IsString({ each: true })
  @MaxLength(255, { each: true })
  @Matches(STORABLE, { each: true, message: '$property must not hold NUL characters or broken unicode' })
  secretNames?: string[] = [];

  /** Tools, resources and prompts of the server, as found by the publishing tool. */
  @IsOptional()
  @IsObject()
  serverCard?: Record<string, unknown>;
}

/** An MCPB bundle that users run on their machines, and Slipway where it runs bundles. */
export class StdioPayloadDto extends PublishPayloadDto {
  @IsIn(bundleRuntimes)
  runtime: BundleRuntime;

  /**
   * Values for the scan, by their names in the manifest's `user_config`. Used where this service runs bundles, and deleted
   * after the scan.
   */
  @IsOptional()
  @IsObject()
  scanCredentials?: Record<string, string>;

  /** Tools, resources and prompts of the server, as found by the publishing tool. */
  @IsOptional()
  @IsObject()
  serverCard?: Record<string, unknown>;
}

/** An accepted release. */
export class PublishedDto {
  /**
   * The release's id.
   * @example '5b1d7a52-0c3e-4b57-8a39-1f3a4e2b8d11'
   */
  deploymentId: string;
  /** @example 'QUEUED' */
  status: string;
  /**
   * The MCP address of the server's current release.
   * @example 'http://127.0.0.1:3000/run/acme--weather'
   */
  mcpUrl: string;
  /** Problems that did not stop the release. */
  warnings?: string[];
}
