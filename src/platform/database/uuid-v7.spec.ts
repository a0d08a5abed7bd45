import { describe, expect, it } from '@jest/globals';
import { timeOfUuidV7, uuidV7 } from './uuid-v7.js';

describe('a UUID of version 7', () => {
  it('has the form of RFC 9562 and is unique', () => {
    const ids = Array.from({ length: 1_000 }, () => uuidV7());
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('contains its time of creation and sorts by it', () => {
    const at = Date.UTC(2026, 10, 20, 10, 15);
    expect(timeOfUuidV7(uuidV7(at))).toEqual(new Date(at));
    expect(uuidV7(at) < uuidV7(at + 1)).toBe(true);
  });
});
