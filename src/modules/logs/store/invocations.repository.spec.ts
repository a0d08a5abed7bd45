import { describe, expect, it } from '@jest/globals';
import { uuidV7 } from '../../../platform/database/uuid-v7.js';
import type { Invocation } from '../invocation.types.js';
import { insertValues } from './invocations.repository.js';

const row = (toolName: string | null): Invocation => ({
  id: uuidV7(),
  serverId: uuidV7(),
  at: 0,
  method: 'POST',
  toolName,
  lines: [],
  exceptions: [],
});

describe('insertValues', () => {
  it('sends a column once if all rows have the same value, and else one value a row', () => {
    const values = insertValues([row('a"\\'), row('a"\\'), row('b'), row(null)], 7);
    expect(values).toContain('{"a\\"\\\\","a\\"\\\\","b",NULL}');
    for (const once of ['{"POST"}', '{"1970-01-01T00:00:00.000Z"}', '{"[]"}', '{NULL}', '{0}'])
      expect(values).toContain(once);
    expect(values.at(-1)).toBe(7);
  });

  it('sends a column with nulls after its first value as one value a row', () => {
    expect(insertValues([row('a'), row(null)], 7)).toContain('{"a",NULL}');
  });
});
