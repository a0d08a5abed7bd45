import { IsOptional, IsString } from 'class-validator';

/** The query of the redirect from an authorization server (RFC 6749 section 4.1.2, RFC 9207). */
export class CallbackQueryDto {
  /** The state, which identifies the authorization. */
  @IsOptional()
  @IsString()
  state?: string;

  /** The authorization code. */
  @IsOptional()
  @IsString()
  code?: string;

  /** The issuer of the authorization response (RFC 9207). */
  @IsOptional()
  @IsString()
  iss?: string;

  /** The error code, instead of a code. */
  @IsOptional()
  @IsString()
  error?: string;

  /** Description of the error. */
  @IsOptional()
  @IsString()
  error_description?: string;
}
