import { IsOptional, IsString } from 'class-validator';

/** What an authorization server sends a browser back with (RFC 6749 section 4.1.2, RFC 9207). */
export class CallbackQueryDto {
  /** Which authorization this answers. */
  @IsOptional()
  @IsString()
  state?: string;

  /** The authorization code. */
  @IsOptional()
  @IsString()
  code?: string;

  /** Who answers. */
  @IsOptional()
  @IsString()
  iss?: string;

  /** Why there is no code. */
  @IsOptional()
  @IsString()
  error?: string;

  /** The same for people. */
  @IsOptional()
  @IsString()
  error_description?: string;
}
