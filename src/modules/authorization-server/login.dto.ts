import { PaginationDto } from '../../platform/http/pagination.dto.js';

export const loginKinds = ['browser', 'password', 'oauth'] as const;

export class LoginDto {
  /**
   * The last part of the path that revokes this login. The id of the password is `password`.
   * @example '9b2f7c1e-4f0a-4a55-8f0e-1d2c3b4a5f60'
   */
  id: string;
  kind: (typeof loginKinds)[number];
  /**
   * The `User-Agent` of a browser, or the name that an MCP client gave itself; null for the password.
   * @example 'Claude Code'
   */
  name: string | null;
  /**
   * The host that receives an MCP client's codes, or `a program on your computer`; null for other kinds.
   * @example 'claude.ai'
   */
  host: string | null;
  /**
   * The MCP endpoint that an MCP client can use; null for other kinds.
   * @example 'https://slipway.example/connect/acme/github/mcp'
   */
  resource: string | null;
  /**
   * The client's address when the login was created; null if it is not known.
   * @example '203.0.113.7'
   */
  address: string | null;
  /**
   * Id of the API key that it began with, and ends with; null for a password.
   * @example '0b5c7f7e-6c0f-4a77-9d5c-2f5b8d3f6a10'
   */
  keyId: string | null;
  /** @example '2026-11-20T10:15:00.000Z' */
  createdAt: string;
  /**
   * Time of the last use; of a browser up to an hour behind. Null if unused, and of the password.
   * @example '2026-11-20T10:15:00.000Z'
   */
  lastUsedAt: string | null;
  /**
   * Time at which the login expires, unless it is used before; null for the password.
   * @example '2027-02-20T10:15:00.000Z'
   */
  expiresAt: string | null;
}

export class LoginListDto {
  logins: LoginDto[];
  pagination: PaginationDto;
}
