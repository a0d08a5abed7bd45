import { Controller, Get, Post, Req, Res, UseFilters } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import { isUUID } from 'class-validator';
import type { Request, Response } from 'express';
import { Env } from '../../config/env.js';
import { Public } from '../../platform/http/public.decorator.js';
import { formToken } from '../../platform/pages/form-token.js';
import { requireOwnHost } from '../../platform/pages/own-host.js';
import { PageFilter, redirectTo, sendPage } from '../../platform/pages/page.js';
import { PageFormsService } from '../people/page-forms.service.js';
import { SessionsService } from '../people/sessions.service.js';
import { AuthorizationServerRepository } from './authorization-server.repository.js';
import { accessPage } from './consent-page.js';
import { TokensService } from './tokens.service.js';

/** Logins on a page. */
const PAGE_GRANTS = 100;

/** `/me/access`: what a person let in, its last use, and its end. */
@ApiExcludeController()
@Public()
@UseFilters(PageFilter)
@Controller('me/access')
export class GrantedAccessController {
  constructor(
    private readonly rows: AuthorizationServerRepository,
    private readonly tokens: TokensService,
    private readonly sessions: SessionsService,
    private readonly forms: PageFormsService,
    private readonly env: Env,
  ) {}

  @Get()
  async show(@Req() request: Request, @Res() response: Response): Promise<void> {
    requireOwnHost(request, this.env);
    const person = await this.sessions.current(request);
    if (!person) return redirectTo(response, '../login?next=/me/access');
    const { page: asked } = request.query;
    const page = typeof asked === 'string' && /^[1-9]\d{0,3}$/.test(asked) ? Number(asked) : 1;
    const offset = (page - 1) * PAGE_GRANTS;
    const grants = await this.rows.grantsOf(person.accountId, { offset, limit: PAGE_GRANTS + 1 });
    const shown = { grants: grants.slice(0, PAGE_GRANTS), older: grants.length > PAGE_GRANTS ? page + 1 : null };
    sendPage(response, accessPage(this.env, shown, formToken(this.env, request, response)));
  }

  @Post()
  async end(@Req() request: Request, @Res() response: Response): Promise<void> {
    const form = await this.forms.read(request, response);
    const person = await this.sessions.current(request);
    if (!person) return redirectTo(response, '../login?next=/me/access');
    const id = form.get('grant');
    if (isUUID(id) && (await this.rows.deleteOwnGrant(String(id), person.accountId))) this.tokens.end([String(id)]);
    redirectTo(response, 'access');
  }
}
