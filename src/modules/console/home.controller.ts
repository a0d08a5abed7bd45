import { Controller, Get, Param, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Env } from '../../config/env.js';
import { DomainError, statusOf } from '../../platform/errors/domain-error.js';
import { UuidOr404 } from '../../platform/http/input.pipe.js';
import { noticeOf, sendFramed } from '../../platform/pages/frame.js';
import type { Html } from '../../platform/pages/html.js';
import { redirectTo, rootFrom } from '../../platform/pages/page.js';
import { CurrentPerson, Page, SentForm } from '../auth/access.decorator.js';
import type { SessionCaller } from '../auth/access.types.js';
import { MembersService } from '../auth/members.service.js';
import { AccessRequestsService } from '../grants/access-requests.service.js';
import { UsableService } from '../grants/usable/usable.service.js';
import { ownServerOrNone, TargetServer } from '../servers/server.decorator.js';
import type { ServerRef } from '../servers/server.types.js';
import { ServerSearchService } from '../servers/search/server-search.service.js';
import { firstRun } from './first-run.js';
import { DONE, homePage, sections, type RefusedDecision } from './home.page.js';

/** Rows of *Needs you*. */
const NEEDS_MAX = 20;

/** `/ui/`: the first page of a person. */
@Controller('ui')
export class HomeController {
  constructor(
    private readonly env: Env,
    private readonly usableService: UsableService,
    private readonly accessRequestsService: AccessRequestsService,
    private readonly serverSearchService: ServerSearchService,
    private readonly membersService: MembersService,
  ) {}

  @Get()
  @Page('accounts:read')
  show(@CurrentPerson() person: SessionCaller, @Req() request: Request, @Res() response: Response): Promise<void> {
    return this.send(person, request, response, null);
  }

  /** Grants what was asked for, or refuses it with the sentence of the form. */
  @Post('requests/:qualifiedName/:requestId')
  @Page('servers:write', ownServerOrNone)
  async decide(
    @CurrentPerson() person: SessionCaller,
    @TargetServer() server: ServerRef,
    @Param('requestId', UuidOr404('Access request not found')) requestId: string,
    @SentForm() form: URLSearchParams,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const refuse = form.get('refuse') ?? undefined;
    const decision = form.has('grant') ? { grant: { level: 'call' as const } } : { refuse };
    try {
      const { state } = await this.accessRequestsService.decide(server, requestId, person, decision);
      redirectTo(response, `../../?done=${state}`);
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      const refused = { requestId, fault: error.message, refuse: refuse ?? '' };
      await this.send(person, request, response, refused, statusOf[error.kind]);
    }
  }

  /** Accepts an invitation into an organization, or declines it. */
  @Post('invitations/:invitationId')
  @Page('accounts:write')
  async answer(
    @CurrentPerson() person: SessionCaller,
    @Param('invitationId', UuidOr404('Invitation not found')) id: string,
    @SentForm() form: URLSearchParams,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const accepts = form.has('accept');
    try {
      if (accepts) await this.membersService.accept(person.accountId, id);
      else await this.membersService.deleteInvitation(person.accountId, id);
      redirectTo(response, `../?done=${accepts ? 'joined' : 'declined'}`);
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      const refused = { requestId: id, fault: error.message, refuse: '' };
      await this.send(person, request, response, refused, statusOf[error.kind]);
    }
  }

  private async send(
    person: SessionCaller,
    request: Request,
    response: Response,
    refused: RefusedDecision | null,
    status = 200,
  ): Promise<void> {
    const { q: words, section: sectionName, cursor, done } = request.query;
    const q =
      typeof words === 'string'
        ? words
            .replace(/[\p{Cc}\p{Cs}]/gu, ' ')
            .trim()
            .slice(0, 255)
        : '';
    const search = q === '' ? {} : { q };
    const only = sections.find((section) => section === sectionName && typeof cursor === 'string');
    const visible = only ? [only] : sections.filter((section) => section !== 'public' || q !== '');
    const waiting = { ...search, state: 'needs' as const, limit: NEEDS_MAX };
    const [owned, granted, requests, invited, ...lists] = await Promise.all([
      this.usableService.list(person, { ...waiting, section: 'mine' }),
      this.usableService.list(person, { ...waiting, section: 'granted' }),
      this.accessRequestsService.list({ deciderId: person.accountId }, { pageSize: NEEDS_MAX }),
      this.membersService.invitations(person.accountId, { pageSize: NEEDS_MAX }),
      ...visible.map((section) =>
        this.usableService.list(person, { ...search, section, ...(only && typeof cursor === 'string' && { cursor }) }),
      ),
    ]);
    const needs = [...owned.usable, ...granted.usable].filter(({ status: state }) => state?.setupUrl !== undefined);
    const ui = `${rootFrom(request.path)}ui/`;
    const isOperatorsHome = person.isOperator && q === '' && !only;
    const hasServers = async () =>
      lists.some(({ usable }) => usable.length > 0) ||
      (await this.serverSearchService.list({ q, pageSize: 1, fields: ['qualifiedName'] }, person)).servers.length > 0;
    const content = {
      ui,
      firstRun: isOperatorsHome ? firstRun(this.env, ui, await hasServers()) : null,
      baseUrl: this.env.baseUrl,
      q,
      needs: needs.slice(0, NEEDS_MAX),
      requests: requests.requests,
      invitations: invited.invitations,
      waitingCount: requests.pagination.totalCount + invited.pagination.totalCount,
      lists: visible.map((section, i) => [section, lists[i]] as [(typeof visible)[number], (typeof lists)[number]]),
      notice: noticeOf(done, DONE),
      refused,
    };
    const page = (token: Html) => homePage({ ...content, token });
    sendFramed(this.env, request, response, person.accountName, page, status);
  }
}
