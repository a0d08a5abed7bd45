import { IsIn } from 'class-validator';
import { roles, type Role } from '../auth/access.types.js';

export class InviteMemberDto {
  /** The role of the person in the organization. An editor can read secrets: code that it publishes can print them. */
  @IsIn(roles)
  role: Role;
}

export class InvitationDto {
  /**
   * The link, for the invited user only. No other response contains it. It works once.
   * @example 'https://slipway.example/invite?token=Qw3xZ0mJb6v1cT8r2yKqL5nD9sF4hG7jA0eWuXoPiR1'
   */
  url: string;
  /**
   * Time until which the link is valid: 72 hours.
   * @example '2026-11-23T10:15:00.000Z'
   */
  expiresAt: string;
}
