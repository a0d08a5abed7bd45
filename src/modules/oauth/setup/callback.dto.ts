import { IsOptional, IsString } from 'class-validator';

/** The query of the redirect from an authorization server (RFC 6749 section 4.1.2, RFC 9207). */
export class CallbackQueryDto {
  /** Identifies the authorization. */
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

  /** The error in words. */
  @IsOptional()
  @IsString()
  error_description?: string;
}
