import { Controller, Get } from '@nestjs/common';
import { CurrentPage, DomainError, FramedPage, Logs, Page, type PageRequest } from '../../extension.js';
import { OwnServersService } from './own-servers.service.js';
import { type LogFilters, logsPage, OUTCOMES, PAGE_SIZE } from './server-logs.page.js';

const NAMES = ['search', 'outcome', 'tool'] as const;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const TEXT_MAX = 1_000;

/** `/ui/s/{slug}/logs`: the runtime logs of a server, for those who read them over REST. */
@Controller('ui/s/:slug/logs')
export class ServerLogsPageController {
  constructor(
    private readonly ownServersService: OwnServersService,
    private readonly logs: Logs,
  ) {}

  @Get()
  @Page('servers:read')
  async show(@CurrentPage() { params, person, query }: PageRequest<{ slug: string }>): Promise<FramedPage> {
    const filters: LogFilters = Object.fromEntries(
      NAMES.flatMap((name) => {
        const value = query[name];
        return typeof value === 'string' && value !== ''
          ? [[name, value.replace(/\p{Cs}|\0/gu, ' ').slice(0, TEXT_MAX)]]
          : [];
      }),
    );
    const before = typeof query.before === 'string' && UUID.test(query.before) ? query.before : undefined;
    const outcome = OUTCOMES.find(([value]) => value === filters.outcome)?.[0];
    const server = await this.ownServersService.open(person, params.slug);
    const search = { ...filters, outcome, before, limit: PAGE_SIZE };
    try {
      const log = await this.logs.search(person, server.name, search);
      return new FramedPage((_, root) => logsPage(addressOf(root, params), server, filters, log, null));
    } catch (error) {
      if (!(error instanceof DomainError) || error.kind !== 'invalid') throw error;
      const emptyLog = { invocations: [], total: 0, totalIsExact: true, leftOut: 0 };
      return new FramedPage(
        (_, root) => logsPage(addressOf(root, params), server, filters, emptyLog, error.message),
        400,
      );
    }
  }
}

function addressOf(root: string, { slug }: { slug: string }): string {
  return `${root}ui/s/${encodeURIComponent(slug)}`;
}
