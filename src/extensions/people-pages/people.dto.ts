import { IsPrintable, IsWhole } from '../../extension.js';

export class PeopleQueryDto {
  @IsPrintable(255)
  q: string;

  @IsWhole(1)
  page: number;
}

/** The name of a new account. */
export class NewAccountDto {
  @IsPrintable(255, 1)
  name: string;
}
