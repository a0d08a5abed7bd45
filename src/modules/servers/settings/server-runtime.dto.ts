import { ApiProperty } from '@nestjs/swagger';
import { ArrayMaxSize, IsArray, IsBoolean, IsOptional, MaxLength } from 'class-validator';
import { ClosedBody } from '../../../platform/http/input.pipe.js';
import { IsHostPattern, Omittable } from '../server.validators.js';

const HOSTS_MAX = 50;
const HOST_CHARS_MAX = 253;

const egressAllow = {
  type: 'array',
  items: { type: 'string', maxLength: HOST_CHARS_MAX },
  maxItems: HOSTS_MAX,
  nullable: true,
  example: ['api.example.com', '*.example.org', 'db.example.com:5432'],
} as const;

/** How a server is run and recorded. */
export class ServerRuntimeDto {
  /** The only hosts that hosted code of the server may reach; null: any host with a public address. */
  @ApiProperty(egressAllow)
  egressAllow: string[] | null;

  /** True when arguments and results are kept in the runtime logs, redacted. */
  logPayloads: boolean;
}

/** What to change; what is left out stays. */
@ClosedBody()
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
  @MaxLength(HOST_CHARS_MAX, { each: true })
  @IsHostPattern()
  egressAllow?: string[] | null;

  /**
   * True keeps arguments and results in the runtime logs from now on, at most 16 KB of each. What looks like a secret is
   * blanked, but nobody can know every secret: turn it on while you look for something.
   */
  @Omittable()
  @IsBoolean()
  logPayloads?: boolean;
}
