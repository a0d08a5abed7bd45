import { setTimeout } from 'node:timers/promises';
import { Controller, Get, Headers, Res } from '@nestjs/common';
import type { Response } from 'express';
import { CurrentPage, DomainError, FramedPage, KeyedLimiter, Logs, Page, type PageRequest } from '../../extension.js';
import { OwnServersService } from './own-servers.service.js';
import { FOLLOWED_SIZE, followedLogPage, type LogFilters, logsPage, OUTCOMES, PAGE_SIZE } from './server-logs.page.js';
import type { RuntimeLog } from './server-logs.page.js';

const NAMES = ['search', 'outcome', 'tool'] as const;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const TEXT_MAX = 1_000;

/** Minimum interval of events, however busy the server is. */
const EVENT_MS = 1_000;

/** Duration of a stream. The rights of its reader are checked again when the stream is opened again. */
const STREAM_MS = 5_000;

/** Limits of streams, of one account and of all accounts. */
const STREAMS_EACH_MAX = 10;
const STREAMS_MAX = 200;

const STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  'x-accel-buffering': 'no',
};

type LogsRequest = PageRequest<{ slug: string }>;

/** `/ui/s/{slug}/logs`: the runtime logs of a server, for those who read them over REST. */
@Controller('ui/s/:slug/logs')
export class ServerLogsPageController {
  private readonly streams = new KeyedLimiter(STREAMS_EACH_MAX, STREAMS_MAX);

  constructor(
    private readonly ownServersService: OwnServersService,
    private readonly logs: Logs,
  ) {}

  @Get()
  @Page('servers:read')
  async show(@CurrentPage() { params, person, query }: LogsRequest): Promise<FramedPage> {
    const filters = filtersIn(query);
    const isFollowed = query.follow !== undefined;
    const before = typeof query.before === 'string' && UUID.test(query.before) ? query.before : undefined;
    const server = await this.ownServersService.open(person, params.slug);
    try {
      const log = await this.logs.search(
        person,
        server.name,
        isFollowed ? followed(filters) : { ...searchOf(filters), before, limit: PAGE_SIZE },
      );
      return new FramedPage((_, root) =>
        isFollowed
          ? followedLogPage(addressOf(root, params), server, filters, log)
          : logsPage(addressOf(root, params), server, filters, log, null),
      );
    } catch (error) {
      if (!(error instanceof DomainError) || error.kind !== 'invalid') throw error;
      const emptyLog = { invocations: [], total: 0, totalIsExact: true, leftOut: 0 };
      return new FramedPage(
        (_, root) => logsPage(addressOf(root, params), server, filters, emptyLog, error.message),
        400,
      );
    }
  }

  /**
   * Sends an event if the log has changed, at most one per second. The stream closes after 5 s: the browser opens it
   * again with the version that it has seen, and its rights are checked again.
   */
  @Get('stream')
  @Page('servers:read')
  async stream(
    @CurrentPage() { params, person, query }: LogsRequest,
    @Headers('last-event-id') last: string | undefined,
    @Res() response: Response,
  ): Promise<void> {
    const server = await this.ownServersService.open(person, params.slug);
    const read = () => this.logs.search(person, server.name, followed(filtersIn(query)));
    await this.streams.run(person.accountId, async () => {
      let version = versionOf(await read());
      let sentVersion = last;
      const closed = new AbortController();
      response.on('close', () => closed.abort());
      response.writeHead(200, STREAM_HEADERS).write('retry: 500\n\n');
      const endMs = performance.now() + STREAM_MS;
      try {
        while (performance.now() < endMs) {
          if (version !== sentVersion) response.write(`id: ${version}\ndata: changed\n\n`);
          sentVersion = version;
          await setTimeout(EVENT_MS, null, { signal: closed.signal });
          version = versionOf(await read());
        }
      } catch {
        // The reader disconnected or lost access; the next stream reports why.
      }
      response.end();
    });
  }
}

function filtersIn(query: Record<string, unknown>): LogFilters {
  return Object.fromEntries(
    NAMES.flatMap((name) => {
      const value = query[name];
      return typeof value === 'string' && value !== ''
        ? [[name, value.replace(/\p{Cs}|\0/gu, ' ').slice(0, TEXT_MAX)]]
        : [];
    }),
  );
}

const searchOf = (filters: LogFilters) => ({
  ...filters,
  outcome: OUTCOMES.find(([value]) => value === filters.outcome)?.[0],
});

const followed = (filters: LogFilters) => ({ ...searchOf(filters), limit: FOLLOWED_SIZE });

/** Returns the version that a reader has seen: the newest request, and the number of parts of all of them. */
function versionOf({ invocations }: RuntimeLog): string {
  const parts = invocations.reduce((sum, { logs, exceptions }) => sum + logs.length + exceptions.length + 1, 0);
  return `${invocations[0]?.id ?? ''}.${parts}`;
}

function addressOf(root: string, { slug }: { slug: string }): string {
  return `${root}ui/s/${encodeURIComponent(slug)}`;
}
