import { ApiProperty } from '#api-docs';
import { ValidateIf } from 'class-validator';
import { IsPrintable } from '../../platform/http/input-values.js';
import { ClosedBody } from '../../platform/http/input.pipe.js';

@ClosedBody()
export class SuspensionDto {
  /**
   * The reason that callers read; null reinstates the target.
   * @example 'It sends the data of its callers elsewhere.'
   */
  @ApiProperty({ type: String, nullable: true, maxLength: 500, minLength: 1 })
  @ValidateIf((_body, value) => value !== null)
  @IsPrintable(500, 1)
  reason: string | null;
}

export class SuspendedDto {
  @ApiProperty({ description: 'What the operator says.', example: 'It sends the data of its callers elsewhere.' })
  reason: string;
  @ApiProperty({ example: '2026-11-20T10:15:00.000Z' })
  since: string;
}

export interface Suspension {
  reason: string;
  /** Account of the operator. */
  by: string;
  /** Time in ISO 8601. */
  at: string;
}

export function toSuspension(reason: string | null, { accountId: by }: { accountId: string }): Suspension | null {
  return reason === null ? null : { reason, by, at: new Date().toISOString() };
}

export function shownSuspension(suspended: Suspension | null | undefined): { suspended?: SuspendedDto } {
  return suspended ? { suspended: { reason: suspended.reason, since: suspended.at } } : {};
}
