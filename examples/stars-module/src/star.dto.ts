import { ApiProperty } from '@nestjs/swagger';

/** The stars of a server. */
export class StarsDto {
  @ApiProperty({ type: 'integer', description: 'Accounts that have starred it.', example: 3 })
  count: number;

  @ApiProperty({ description: 'True if the caller has.', example: true })
  starred: boolean;
}
