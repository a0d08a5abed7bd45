import { applyDecorators } from '@nestjs/common';
import { ApiProperty } from '#api-docs';
import { Transform } from 'class-transformer';
import {
  ArrayMaxSize,
  IsIn,
  IsInt,
  IsOptional,
  IsString,
  Matches,
  Max,
  MaxLength,
  Min,
  Length,
  ValidateBy,
  ValidateIf,
  type ValidationArguments,
} from 'class-validator';

const flags = new Map<unknown, boolean>([
  ['1', true],
  ['true', true],
  ['0', false],
  ['false', false],
]);

/** Accepts an optional boolean in a query, as published clients write it: `1`, `0`, `true` or `false`. */
export function IsFlag(): PropertyDecorator {
  return applyDecorators(
    Transform(({ value }: { value: unknown }) => flags.get(value) ?? value),
    IsOptional(),
    IsIn([true, false], { message: '$property must be 1, 0, true or false' }),
  );
}

/** Accepts an optional whole number in a query, in digits: `1e1`, `0x10`, `+5` and ` 5` are rejected. */
export function IsWhole(min: number, max = Number.MAX_SAFE_INTEGER): PropertyDecorator {
  const range = max === Number.MAX_SAFE_INTEGER ? `of ${min} or more` : `from ${min} to ${max}`;
  const message = `$property must be a whole number ${range}`;
  return applyDecorators(
    ApiProperty({ type: 'integer', minimum: min, maximum: max }),
    IsOptional(),
    Transform(({ value }: { value: unknown }) =>
      typeof value === 'string' && /^-?\d+$/.test(value) ? Number(value) : value,
    ),
    IsInt({ message }),
    Min(min, { message }),
    Max(max, { message }),
  );
}

/** Text that Postgres can store: no NUL, no lone surrogates. */
export const STORABLE = /^[^\0\p{Cs}]*$/u;

export function IsText(charsMax: number): PropertyDecorator {
  return applyDecorators(
    ApiProperty({ type: String, maxLength: charsMax }),
    IsString(),
    MaxLength(charsMax),
    Matches(STORABLE, { message: '$property must not hold NUL characters or broken unicode' }),
  );
}

export function IsOptionalText(charsMax: number): PropertyDecorator {
  return applyDecorators(IsOptional(), IsText(charsMax));
}

/** Accepts a string of one line that can be stored: no control characters, no lone surrogates. */
export function IsPrintable(charsMax: number, charsMin = 0): PropertyDecorator {
  return applyDecorators(
    ApiProperty({
      type: String,
      maxLength: charsMax,
      ...(charsMin > 0 && { minLength: charsMin }),
      pattern: '^[^\\p{Cc}\\p{Cs}]*$',
    }),
    IsString(),
    Length(charsMin, charsMax),
    Matches(/^[^\p{Cc}\p{Cs}]*$/u, { message: '$property must not hold control characters or broken unicode' }),
  );
}

/** Accepts optional values in one query parameter, separated by commas; blanks around them and empty ones are ignored. */
export function IsCommaList(countMax: number): PropertyDecorator {
  return applyDecorators(
    Transform(({ value }: { value: unknown }) => {
      const items = (Array.isArray(value) ? value : [value]).flatMap((text) => String(text).split(','));
      return items.map((text) => text.trim()).filter((text) => text !== '');
    }),
    IsOptional(),
    ArrayMaxSize(countMax, { message: `$property must hold at most ${countMax} values` }),
    ApiProperty({ type: String, required: false }),
  );
}

export function checkWith(name: string, faultOf: (value: unknown) => string | null): () => PropertyDecorator {
  const validate = (value: unknown) => faultOf(value) === null;
  const defaultMessage = (args?: ValidationArguments) => `${args?.property} ${faultOf(args?.value)}`;
  return () => ValidateBy({ name, validator: { validate, defaultMessage } });
}

/** Allows the member to be omitted. Unlike with `IsOptional`, null is validated. */
export function Omittable(): PropertyDecorator {
  return ValidateIf((_body, value) => value !== undefined);
}

/** Returns the members of `record` that `fields` names; all of them without `fields`. Unknown names are ignored. */
export function project<T extends object>(record: T, fields: readonly string[] | undefined): Partial<T> {
  if (fields === undefined) return record;
  return Object.fromEntries(Object.entries(record).filter(([name]) => fields.includes(name))) as Partial<T>;
}
