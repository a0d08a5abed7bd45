import { Controller, Get, Header, Res } from '@nestjs/common';
import type { Response } from 'express';
import { CurrentPage, FramedPage, HOUR_MS, Page, type InvocationOutcome, type PageRequest } from '../../extension.js';
import { callsCsv } from './calls-csv.js';
import { callsPage, OUTCOMES, PAGE_SIZE, PERIODS, type CallFilters } from './calls.page.js';
import { CallsRepository, type CallFilter } from './calls.repository.js';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const TEXT_MAX = 500;
const CSV_ROWS_MAX = 10_000;

/** Time after which the search reads no further window. */
const SEARCH_MS = 100;

/** `/ui/calls`: the recorded calls of everything that a person can see, in one list. */
@Controller('ui/calls')
export class CallsPageController {
  constructor(private readonly callsRepository: CallsRepository) {}

  @Get()
  @Page('connections:read')
  async show(@CurrentPage() { person, query }: PageRequest): Promise<FramedPage> {
    const filters = filtersIn(query);
    const filter = filterOf(filters);
    const { partMs } = PERIODS[filters.since];
    const [{ calls, end }, counts, opened] = await Promise.all([
      this.callsRepository.list(person, filter, PAGE_SIZE + 1, SEARCH_MS),
      this.callsRepository.count(person, { ...filter, before: undefined }, partMs),
      filters.call === undefined ? undefined : this.callsRepository.find(person, filters.call),
    ]);
    return new FramedPage(
      (_, root) => callsPage({ root, filters, from: filter.from, calls, end, ...counts, opened }),
      opened === null ? 404 : 200,
    );
  }

  /** The newest 10,000 calls that match the filters. */
  @Get('csv')
  @Header('cache-control', 'no-store')
  @Page('connections:read')
  async download(
    @CurrentPage() { person, query }: PageRequest,
    @Res({ passthrough: true }) response: Response,
  ): Promise<string> {
    const calls = await this.callsRepository.listAll(person, filterOf(filtersIn(query)), CSV_ROWS_MAX);
    response.attachment('calls.csv').type('text/csv; charset=utf-8');
    return callsCsv(calls);
  }
}

/** Returns the filters of an address, without values that no call can have. */
function filtersIn(query: Record<string, unknown>): CallFilters {
  const text = (name: string) => {
    const value = query[name];
    return typeof value === 'string' && value !== ''
      ? { [name]: value.replaceAll('\0', ' ').toWellFormed().trim().slice(0, TEXT_MAX) }
      : {};
  };
  const id = (name: string) => {
    const value = query[name];
    return typeof value === 'string' && UUID.test(value) ? { [name]: value } : {};
  };
  const { since, outcome, all } = query;
  return {
    ...text('target'),
    ...text('account'),
    ...text('tool'),
    ...(OUTCOMES.some(([value]) => value === outcome) && { outcome: outcome as InvocationOutcome }),
    since: typeof since === 'string' && Object.hasOwn(PERIODS, since) ? (since as CallFilters['since']) : '24h',
    isAll: all !== undefined,
    ...id('before'),
    ...id('call'),
  };
}

function filterOf({ target, account, tool, outcome, since, isAll, before }: CallFilters): CallFilter {
  const from = new Date(Date.now() - PERIODS[since].hours * HOUR_MS);
  return { from, target, account, tool, outcome, isAll, before };
}
