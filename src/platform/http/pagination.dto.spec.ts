import { describe, expect, it } from '@jest/globals';
import { pageOf } from './pagination.dto.js';

describe('pageOf', () => {
  it.each([
    // page, pageSize, totalCount, offset, totalPages
    [1, 20, 0, null, 0],
    [1, 20, 1, 0, 1],
    [1, 20, 20, 0, 1],
    [2, 20, 20, null, 1],
    [2, 20, 21, 20, 2],
    [3, 7, 21, 14, 3],
    [Number.MAX_SAFE_INTEGER, 100, 1_000_000, null, 10_000],
  ])('page %d of %d of %d rows starts at %s', (page, pageSize, totalCount, offset, totalPages) => {
    expect(pageOf({ page, pageSize }, totalCount)).toEqual({
      offset,
      pagination: { currentPage: page, pageSize, totalPages, totalCount },
    });
  });
});
