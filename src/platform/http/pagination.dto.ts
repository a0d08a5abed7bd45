import { ApiProperty } from '#api-docs';
import { IsWhole } from './input-values.js';

/** Position in a list with page numbers. */
export class PaginationDto {
  /** @example 1 */
  @ApiProperty({ type: 'integer' })
  currentPage: number;
  /** @example 20 */
  @ApiProperty({ type: 'integer' })
  pageSize: number;
  /** @example 1 */
  @ApiProperty({ type: 'integer' })
  totalPages: number;
  /** @example 3 */
  @ApiProperty({ type: 'integer' })
  totalCount: number;
}

/** Query of a page-numbered list; a page past the end is empty. */
export class PageQueryDto {
  /** Page to show, from 1. */
  @IsWhole(1)
  page?: number = 1;

  /** Items per page. */
  @IsWhole(1, 100)
  pageSize?: number = 20;
}

/**
 * Returns the offset and limit of a page, given the number of matching rows.
 *
 * @returns `offset` null when the page lies past the end. The database is then not queried: a page can be 2^53-1, and
 * Postgres rejects an offset above 2^63.
 */
export function pageOf(
  { page = 1, pageSize = 20 }: PageQueryDto,
  totalCount: number,
): { offset: number | null; pagination: PaginationDto } {
  const totalPages = Math.ceil(totalCount / pageSize);
  return {
    offset: page > totalPages ? null : (page - 1) * pageSize,
    pagination: { currentPage: page, pageSize, totalPages, totalCount },
  };
}

/** Reads one page of rows; none past the end. @param list reads rows from `offset`, at most `limit` */
export async function readPage<Row>(
  query: PageQueryDto,
  count: Promise<number>,
  list: (page: { offset: number; limit: number }) => Promise<Row[]>,
): Promise<{ rows: Row[]; pagination: PaginationDto }> {
  const { offset, pagination } = pageOf(query, await count);
  return { rows: offset === null ? [] : await list({ offset, limit: pagination.pageSize }), pagination };
}
