import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';
import { InvalidInputError } from '../../../platform/errors/domain-error.js';
import { storableFault } from '../../../platform/database/storable.js';
import { jsonIn } from '../../../platform/text/json-bounds.js';

const PREFIX = 'metadata.';

/** Maximum number of filters, each of which adds one or two containment tests. */
const FILTERS_MAX = 16;

export interface MetadataFilter {
  key: string;
  value: string;
}

/**
 * Returns the JSON values that a filter matches: its string and, because clients send other values as JSON, the parsed
 * string. Values that jsonb cannot store are left out.
 */
export function jsonValuesOf({ value }: MetadataFilter): unknown[] {
  const parsed = jsonIn(value);
  const isOther = parsed !== undefined && typeof parsed !== 'string' && storableFault(parsed) === null;
  return isOther ? [value, parsed] : [value];
}

/** Injects the `metadata.{key}={value}` parameters, which a DTO cannot list. */
export const MetadataFilters = createParamDecorator((_: unknown, context: ExecutionContext): MetadataFilter[] => {
  const filters = Object.entries(context.switchToHttp().getRequest<Request>().query).flatMap(([name, value]) => {
    if (!name.startsWith(PREFIX)) return [];
    const key = name.slice(PREFIX.length);
    if (key === '') throw new InvalidInputError('metadata. must be followed by a key');
    if (typeof value !== 'string') throw new InvalidInputError(`${name} must be sent once`);
    const fault = storableFault(key) ?? storableFault(value);
    if (fault !== null) throw new InvalidInputError(`${name} ${fault}`);
    return [{ key, value }];
  });
  if (filters.length > FILTERS_MAX) throw new InvalidInputError(`at most ${FILTERS_MAX} metadata filters are allowed`);
  return filters;
});
