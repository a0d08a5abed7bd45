import { SetMetadata } from '@nestjs/common';
import * as swagger from '@nestjs/swagger';
import { describe, expect, it } from '@jest/globals';
import { knownQuery } from './known-query.guard.js';
import { ACCESS } from './public.decorator.js';
import * as silent from './silent-api-docs.js';

describe.each([
  ['@nestjs/swagger', swagger],
  ['silent-api-docs', silent],
])('%s', (_name, { ApiExcludeController, ApiExcludeEndpoint, ApiQuery }) => {
  class Documented {
    @SetMetadata(ACCESS, {})
    @ApiQuery({ name: 'mode', schema: { type: 'string' } })
    @ApiQuery({ name: 'metadata', schema: { type: 'object', additionalProperties: { type: 'string' } } })
    list(): void {}

    @SetMetadata(ACCESS, {})
    @ApiExcludeEndpoint()
    hidden(): void {}
  }

  @ApiExcludeController()
  class Hidden {
    @SetMetadata(ACCESS, {})
    list(): void {}
  }

  const queryOf = (type: typeof Documented | typeof Hidden, name: string) =>
    knownQuery(type, (type.prototype as unknown as Record<string, object>)[name]);

  it('keeps the query parameters that a route declares', () => {
    expect(queryOf(Documented, 'list')).toEqual({ names: ['mode'], prefixes: ['metadata.'] });
  });

  it('keeps which routes the documents omit', () => {
    expect(queryOf(Documented, 'hidden')).toBe('any');
    expect(queryOf(Hidden, 'list')).toBe('any');
  });
});
