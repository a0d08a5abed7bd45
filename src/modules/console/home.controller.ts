import { Controller, Get, Optional, Param, Post } from '@nestjs/common';
import { Env } from '../../config/env.js';
import { UuidOr404 } from '../../platform/http/input.pipe.js';
import { respondToForm, type RejectedForm } from '../../platform/pages/forms.js';
import { FramedPage, noticeOf, Redirect } from '../../platform/pages/frame.js';
import { rootFrom } from '../../platform/pages/page.js';
import { CurrentPage, Form, Page, type PageRequest } from '../auth/access.decorator.js';
import { AccountsService } from '../auth/accounts.service.js';
import { MembersService } from '../auth/members.service.js';
import { AccessRequestsService } from '../grants/access-requests.service.js';
import { usableStates } from '../grants/usable/usable.types.js';
import { UsableService } from '../grants/usable/usable.service.js';
import { ServerSearchService } from '../servers/search/server-search.service.js';
import { firstRun } from './first-run.js';
import { DONE, homePage } from './home.page.js';
import { PageParts } from './page-parts.types.js';

/** Maximum number of items in *Needs you*, and of servers from the catalogue. */
const NEEDS_MAX = 20;
const FOUND_MAX = 10;

@Controller('ui')
export class HomeController {
  constructor(
    private readonly env: Env,
    private readonly usableService: UsableService,
    private readonly accessRequestsService: AccessRequestsService,
    private readonly serverSearchService: ServerSearchService,
    private readonly membersService: MembersService,
    private readonly accountsService: AccountsService,
    @Optional() private readonly pageParts?: PageParts,
  ) {}

  @Get()
  @Page('accounts:read')
  show(@CurrentPage() page: PageRequest): Promise<FramedPage> {
    return this.render(page);
  }

  @Post('invitations/:invitationId/accept')
  @Form('accounts:write')
  accept(@CurrentPage() page: PageRequest, @Param('invitationId', UuidOr404('Invitation not found')) id: string) {
    return this.respond(page, `invitations/${id}/accept`, async () => {
      const { organizationId } = await this.membersService.accept(page.person.accountId, id);
      return new Redirect(`ui/o/${organizationId}?done=joined`);
    });
  }

  @Post('invitations/:invitationId/decline')
  @Form('accounts:write')
  decline(@CurrentPage() page: PageRequest, @Param('invitationId', UuidOr404('Invitation not found')) id: string) {
    return this.respond(page, `invitations/${id}/decline`, async () => {
      await this.membersService.deleteInvitation(page.person, page.person.accountId, id);
      return 'declined';
    });
  }

  /** @param work returns a word of {@link DONE} */
  private respond(page: PageRequest, name: string, work: () => Promise<string | Redirect>) {
    const run = async () => {
      const outcome = await work();
      return typeof outcome === 'string' ? new Redirect(`ui/?done=${outcome}`) : outcome;
    };
    return respondToForm(name, page.form, run, (rejected) => this.render(page, rejected));
  }

  private async render({ person, query, path }: PageRequest, rejected?: RejectedForm): Promise<FramedPage> {
    const { q: words, state: stateName, cursor, done } = query;
    const q =
      typeof words === 'string'
        ? words
            .replace(/[\p{Cc}\p{Cs}]/gu, ' ')
            .trim()
            .slice(0, 255)
        : '';
    const state = usableStates.find((name) => name === stateName);
    const isList = state !== undefined || typeof cursor === 'string';
    const filter = { section: 'all' as const, ...(q !== '' && { q }) };
    const fields = ['qualifiedName', 'displayName', 'description', 'score'] as const;
    const [waiting, requests, invited, usable, catalogue] = await Promise.all([
      this.usableService.list(person, { ...filter, state: 'needs', limit: NEEDS_MAX }),
      this.accessRequestsService.list({ deciderId: person.accountId }, { pageSize: NEEDS_MAX }),
      this.membersService.invitations(person.accountId, { pageSize: NEEDS_MAX }),
      this.usableService.list(person, { ...filter, state, ...(typeof cursor === 'string' && { cursor }) }),
      q !== '' && !isList
        ? this.serverSearchService.list({ q, pageSize: FOUND_MAX, fields: [...fields] }, person)
        : { servers: [] },
    ]);
    const isFirst = q === '' && !isList;
    const slot = { person, target: null, address: `${rootFrom(path)}ui` };
    const [parts, others] = isFirst
      ? await Promise.all([this.pageParts?.find('needs', slot), this.pageParts?.find('home', slot)])
      : [];
    const isOperatorsHome = person.isOperator && isFirst;
    const hasServers = async () =>
      usable.counts.all > 0 ||
      (await this.serverSearchService.list({ q, pageSize: 1, fields: ['qualifiedName'] }, person)).servers.length > 0;
    const isPublished = isOperatorsHome && (await hasServers());
    const people = isOperatorsHome ? await this.accountsService.list({ kind: 'user', pageSize: 1 }) : null;
    const hasPeople = people !== null && people.pagination.totalCount > 1;
    const content = {
      baseUrl: this.env.baseUrl,
      q,
      needs: isList ? [] : waiting.usable,
      requests: isFirst ? requests.requests : [],
      invitations: isFirst ? invited.invitations : [],
      waitingCount: isFirst ? requests.pagination.totalCount + invited.pagination.totalCount : 0,
      usable,
      state,
      isLater: typeof cursor === 'string',
      catalogue: catalogue.servers,
      notice: noticeOf(done, DONE),
      rejected,
    };
    return new FramedPage((token, root) => {
      const address = `${root}ui`;
      const steps = isOperatorsHome ? firstRun(this.env, `${address}/`, hasPeople, isPublished) : null;
      const shown = { parts: parts?.map((part) => part(token)), others: others?.map((part) => part(token)) };
      return homePage({ ...content, ...shown, token, address, firstRun: steps });
    });
  }
}
