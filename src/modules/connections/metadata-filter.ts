import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';
import { InvalidInputError } from '../../platform/errors/domain-error.js';

const PREFIX = 'metadata.';

/** Keys a filter may name at once; each is one containment test. */
const FILTERS_MAX = 16;

/** One `metadata.{key}={value}` of a query. */
export interface MetadataFilter {
  key: string;
  value: string;
}

/**
 * The metadata filters of a query.
 *
 * @throws InvalidInputError
 */
export function metadataFilters(query: Record<string, unknown>): MetadataFilter[] {
  const filters = Object.entries(query).flatMap(([name, value]) => {
    if (!name.startsWith(PREFIX)) return [];
    const key = name.slice(PREFIX.length);
    if (key === '') throw new InvalidInputError('metadata. must be followed by a key');
    if (typeof value !== 'string') throw new InvalidInputError(`${name} must be given once`);
    if ([key, value].some((text) => text.includes('\0') || !text.isWellFormed())) {
      throw new InvalidInputError(`${name} must not hold NUL characters or broken unicode`);
    }
    return [{ key, value }];
  });
  if (filters.length > FILTERS_MAX) throw new InvalidInputError(`at most ${FILTERS_MAX} metadata filters are taken`);
  return filters;
}

/**
 * What a filter matches, as objects to test for containment: the value as text, and, since clients write other values
 * as JSON, what the text means as JSON.
 */
export function candidatesOf({ key, value }: MetadataFilter): object[] {
  const entry = (meaning: unknown) => Object.fromEntries([[key, meaning]]);
  try {
    const meaning: unknown = JSON.parse(value);
    return typeof meaning === 'string' ? [entry(value)] : [entry(value), entry(meaning)];
  } catch {
    return [entry(value)];
  }
}

/** The `metadata.{key}={value}` parameters, which no DTO can list. */
export const MetadataFilters = createParamDecorator((_: unknown, context: ExecutionContext): MetadataFilter[] => {
  return metadataFilters(context.switchToHttp().getRequest<Request>().query);
});
