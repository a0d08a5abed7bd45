import { ApiProperty } from '#api-docs';
import {
  IsBoolean,
  IsIn,
  IsOptional,
  IsString,
  Length,
  Matches,
  MaxLength,
  MinLength,
  ArrayMaxSize,
  IsArray,
} from 'class-validator';
import { IsPrintable, IsText, Omittable } from '../../../platform/http/input-values.js';
import { ClosedBody, SpelledBody } from '../../../platform/http/input.pipe.js';
import { visibilities, type Visibility } from '../../targets/target.types.js';
import { IsWebUrl, SECRET_NAME, IsHostPattern } from '../server.validators.js';

const HOSTS_MAX = 50;

const egressAllow = {
  type: 'array',
  items: { type: 'string' },
  maxItems: HOSTS_MAX,
  nullable: true,
  example: ['api.example.com', '*.example.org', 'db.example.com:5432'],
} as const;

/** The runtime settings of a server. */
export class ServerRuntimeDto {
  /** The only hosts that hosted code of the server can reach; null: any host with a public address. */
  @ApiProperty(egressAllow)
  egressAllow: string[] | null;

  /** True if arguments and results are stored in the runtime logs, redacted. */
  logPayloads: boolean;
}

/** Fields to change; others stay unchanged. */
@ClosedBody()
@SpelledBody()
export class UpdateServerRuntimeDto {
  /**
   * At most 50 of: a host (`api.example.com`), the names below one (`*.example.com`), an address, each with or without a
   * port. Without a port, requests may use 80, 443 and the ports from 1024, raw connections 80 and 443. Only public
   * addresses are reached in any case, and never port 25. Null opens all public hosts again; an empty list closes all.
   */
  @ApiProperty({ ...egressAllow, required: false })
  @IsOptional()
  @IsArray()
  @ArrayMaxSize(HOSTS_MAX)
  @IsHostPattern()
  egressAllow?: string[] | null;

  /**
   * True stores arguments and results in the runtime logs from now on, at most 16 KB of each. Text that looks like a secret is
   * redacted, but not every secret can be recognised: turn it on only while you debug.
   */
  @Omittable()
  @IsBoolean()
  logPayloads?: boolean;
}

/** Fields to change; others stay unchanged. Null clears a field where it is allowed. */
@SpelledBody()
export class UpdateServerDto {
  /**
   * Display name, 1 to 255 characters.
   * @example 'Weather'
   */
  @Omittable()
  @IsPrintable(255, 1)
  displayName?: string;

  /**
   * Purpose of the server.
   * @example 'Forecasts for any place.'
   */
  @Omittable()
  @IsText(10_000)
  description?: string;

  /**
   * The server's own web page.
   * @example 'https://weather.example.com'
   */
  @IsOptional()
  @IsWebUrl()
  homepage?: string | null;

  /**
   * URL of the source code. `repoOwner` and `repoName` of the list are taken from it.
   * @example 'https://github.com/acme/weather'
   */
  @IsOptional()
  @IsWebUrl()
  repositoryUrl?: string | null;

  /**
   * URL of a page that links to the server.
   * @example 'https://acme.example.com/blog/weather'
   */
  @IsOptional()
  @IsWebUrl()
  backlinkUrl?: string | null;

  /**
   * License of the server, preferably as an SPDX identifier.
   * @example 'MIT'
   */
  @IsOptional()
  @IsText(255)
  license?: string | null;

  /**
   * URL of an icon elsewhere. An uploaded icon takes precedence.
   * @example 'https://weather.example.com/icon.png'
   */
  @IsOptional()
  @IsWebUrl()
  iconUrl?: string | null;

  /** True hides the server from the lists of other accounts; anyone who knows its name can still read and use it, unless it is private. */
  @Omittable()
  @IsBoolean()
  unlisted?: boolean;

  /**
   * `private`: only the owner and grantees can find and call the server; everybody else receives 404. `restricted`: everybody
   * can find it, and only the owner and grantees can call it. Open calls and streams of other accounts are closed.
   * @example 'restricted'
   */
  @Omittable()
  @ApiProperty({ enum: visibilities, required: false })
  @IsIn(visibilities)
  visibility?: Visibility;

  /** True confirms that everybody can call the server with its secrets. Required with `visibility: "public"` for a server with secrets. */
  @Omittable()
  @IsBoolean()
  confirmSecrets?: boolean;
}

export class UpdatedServerDto {
  /** Always true. */
  success: boolean;
  /** @example 'acme' */
  namespace: string;
  /**
   * Empty for a namespace-only server.
   * @example 'weather'
   */
  server: string;
}

/** The target of a transfer. */
export class TransferServerDto {
  /**
   * The account that receives it: the id of `GET /accounts/me`, or `me`.
   * @example 'me'
   */
  @IsString()
  @Length(1, 255)
  targetOrganizationId: string;

  /**
   * A namespace of that account.
   * @example 'acme-labs'
   */
  @IsString()
  @Length(1, 39)
  targetNamespace: string;

  /**
   * Name of the server in the target namespace. Default: its present name; empty for the namespace-only server.
   * @example 'weather'
   */
  @Omittable()
  @IsString()
  @MaxLength(39)
  targetSlug?: string;
}

export class TransferredServerDto extends UpdatedServerDto {
  /** @example 'acme-labs/weather' */
  qualifiedName: string;
}

@SpelledBody()
export class VerifyServerDto {
  /** @example true */
  @IsBoolean()
  verified: boolean;
}

export class UploadedIconDto {
  /**
   * URL of the icon; needs no key for at least a day.
   * @example 'http://127.0.0.1:3000/servers/acme%2Fweather/icon?expires=1795305600&signature=…'
   */
  iconUrl: string;
}

/** A subdomain as published clients know it: a DNS label of 2 to 63 characters that begins with a letter. */
const SUBDOMAIN = /^[a-z][a-z0-9-]{0,61}[a-z0-9]$/;

@ClosedBody()
@SpelledBody()
export class UpdateDomainDto {
  /**
   * 2 to 63 lower-case letters, digits and hyphens; a letter first, no hyphen last.
   * @example 'acme-weather'
   */
  @IsString()
  @Matches(SUBDOMAIN, {
    message: 'subdomain must be 2 to 63 lower-case letters, digits and hyphens, a letter first and no hyphen last',
  })
  subdomain: string;
}

/** The address of a server's current release. */
export class ServerDomainDto {
  /** @example 'managed' */
  id: string;
  /** @example 'managed' */
  type: string;
  /**
   * The host of this service: run endpoints differ in their path.
   * @example '127.0.0.1'
   */
  hostname: string;
  /**
   * The last segment of the run endpoint.
   * @example 'acme--weather'
   */
  subdomain: string;
  /**
   * The run endpoint.
   * @example 'http://127.0.0.1:3000/run/acme--weather'
   */
  url: string;
  /** @example '2026-11-20T10:15:00.000Z' */
  createdAt: string;
  /** @example '2026-11-20T10:15:00.000Z' */
  updatedAt: string;
}

export class ServerDomainListDto {
  domains: ServerDomainDto[];
}

/** A secret: the name of its binding in hosted code, and its text. */
@SpelledBody()
export class SetSecretDto {
  /**
   * At most 128 letters, digits and underscores, with no digit first.
   * @example 'WEATHER_API_KEY'
   */
  @ApiProperty({ pattern: SECRET_NAME.source })
  @Matches(SECRET_NAME, { message: 'name must be 1 to 128 letters, digits and underscores, with no digit first' })
  name: string;

  /**
   * At most 16,384 characters. Stored encrypted and never returned.
   * @example 'the key the server needs'
   */
  @IsText(16_384)
  @MinLength(1)
  value: string;
}

/** A secret without its value. */
export class SecretDto {
  /** @example 'WEATHER_API_KEY' */
  name: string;
  /** Always `secret_text`. */
  @ApiProperty({ enum: ['secret_text'] })
  type: 'secret_text';
}
