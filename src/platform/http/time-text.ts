import { applyDecorators } from '@nestjs/common';
import { ApiProperty } from '#api-docs';
import { Transform } from 'class-transformer';
import { IsDate, IsOptional } from 'class-validator';

/** A date, with or without a time, `T` or a blank between them, with or without a zone. */
const TIME = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)(Z|[+-]\d\d:?\d\d)?)?$/i;

/**
 * Returns the moment that a string means; null if none. Without a zone it is UTC, like the times that Slipway writes.
 */
export function parseTime(text: string): Date | null {
  const [, day, time = '00:00', zone = 'Z'] = TIME.exec(text.trim()) ?? [];
  if (day === undefined) return null;
  // `Date` moves a day that does not exist, such as 2026-02-30, to another one.
  const midnight = new Date(`${day}T00:00:00Z`);
  if (Number.isNaN(midnight.getTime()) || !midnight.toISOString().startsWith(day)) return null;
  const date = new Date(`${day}T${time}${zone.toUpperCase()}`);
  return Number.isNaN(date.getTime()) ? null : date;
}

/** Returns `YYYY-MM-DD HH:MM:SS` in UTC (Spec 2.5), and ISO 8601 with milliseconds. */
export function timesOf(moment: Date | number): { timestamp: string; at: string } {
  const at = new Date(moment).toISOString();
  return { timestamp: at.slice(0, 19).replace('T', ' '), at };
}

/** Accepts an optional moment in a query: ISO 8601, or as log entries show it. */
export function IsTime(): PropertyDecorator {
  return applyDecorators(
    ApiProperty({ type: String, required: false }),
    IsOptional(),
    Transform(({ value }: { value: unknown }) => (typeof value === 'string' ? (parseTime(value) ?? value) : value)),
    IsDate({ message: '$property must be a time such as 2026-11-20T10:15:00Z' }),
  );
}
