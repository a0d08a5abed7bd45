import { ApiProperty } from '#api-docs';
import { IsIn, IsOptional, IsString, IsUUID } from 'class-validator';
import { IsPrintable, IsTime, IsWhole } from '../../extension.js';

export class ChangesQueryDto {
  /** Changes from this time on: ISO 8601. */
  @IsTime()
  since?: Date;

  /** Changes by the account with this id or name. */
  @IsOptional()
  @IsPrintable(255)
  actor?: string;

  /** Id of the API key, login or session that made the change. */
  @IsOptional()
  @IsUUID()
  credential?: string;

  /** Changes of the target with this id or name. */
  @IsOptional()
  @IsPrintable(300)
  target?: string;

  /** Changes per page. */
  @IsWhole(1, 1_000)
  limit?: number = 100;

  /** The `nextCursor` of the previous page; in CSV, of the header `Slipway-Next-Cursor`. */
  @IsOptional()
  @IsString()
  cursor?: string;

  /** `csv` for a table with a first line of names. */
  @IsOptional()
  @IsIn(['json', 'csv'])
  format?: 'json' | 'csv' = 'json';
}

export class ChangeActorDto {
  /** @example '4f1f2f54-8f8c-4a8e-9d0e-3c1f1b0a2d11' */
  id: string;
  /**
   * Null for an account that was deleted.
   * @example 'carol'
   */
  name: string | null;
}

export class ChangeTargetDto {
  /** @example '7c9e6679-7425-40de-944b-e07fc1f90ae7' */
  id: string;
  /**
   * Its name at the time of the change.
   * @example 'acme/weather'
   */
  name: string;
}

export class ChangeDto {
  /** @example '2026-11-29T10:15:00.000Z' */
  createdAt: string;
  /**
   * The kind of the target, and `created`, `changed` or `deleted`.
   * @example 'server.changed'
   */
  action: string;
  target: ChangeTargetDto;
  /**
   * Id of the account that owns the target.
   * @example '4f1f2f54-8f8c-4a8e-9d0e-3c1f1b0a2d11'
   */
  accountId: string;
  /** Null for the service itself, for its command line, for a person with a link, and for a browser that signs out. */
  @ApiProperty({ type: ChangeActorDto, nullable: true })
  actor: ChangeActorDto | null;
  /**
   * Id of the API key, login or session; of one that began with a key, the id of the key.
   * @example '0b5c7f7e-6c0f-4a77-9d5c-2f5b8d3f6a10'
   */
  credentialId: string | null;
  /** The changed fields before the change, without secrets; null after a creation. */
  @ApiProperty({ type: Object, nullable: true, example: { visibility: 'private' } })
  before: Record<string, unknown> | null;
  /** The changed fields after the change, without secrets; null after a deletion. */
  @ApiProperty({ type: Object, nullable: true, example: { visibility: 'public' } })
  after: Record<string, unknown> | null;
}

export class ChangeListDto {
  changes: ChangeDto[];
  /** The `cursor` of the next page; null on the last one. */
  nextCursor: string | null;
}
