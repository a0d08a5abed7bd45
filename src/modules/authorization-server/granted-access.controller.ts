import { Controller, Get, Post, Query, Req, Res } from '@nestjs/common';
import { isUUID } from 'class-validator';
import type { Request, Response } from 'express';
import { Env } from '../../config/env.js';
import { sendFramed } from '../../platform/pages/frame.js';
import { redirectTo } from '../../platform/pages/page.js';
import { CurrentPerson, Page, SentForm } from '../auth/access.decorator.js';
import type { SessionCaller } from '../auth/access.types.js';
import { AuthorizationServerRepository } from './authorization-server.repository.js';
import { accessPage } from './consent-page.js';
import { TokensService } from './tokens.service.js';

/** Logins on a page. */
const PAGE_GRANTS = 100;

/** `/me/access`: what a person let in, its last use, and its end. */
@Controller('me/access')
export class GrantedAccessController {
  constructor(
    private readonly authorizationServerRepository: AuthorizationServerRepository,
    private readonly tokensService: TokensService,
    private readonly env: Env,
  ) {}

  @Get()
  @Page('accounts:read')
  async show(
    @CurrentPerson() { accountId, accountName }: SessionCaller,
    @Query('page') pageQuery: unknown,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const page = typeof pageQuery === 'string' && /^[1-9]\d{0,3}$/.test(pageQuery) ? Number(pageQuery) : 1;
    const offset = (page - 1) * PAGE_GRANTS;
    const grants = await this.authorizationServerRepository.grantsOf(accountId, { offset, limit: PAGE_GRANTS + 1 });
    const view = { grants: grants.slice(0, PAGE_GRANTS), older: grants.length > PAGE_GRANTS ? page + 1 : null };
    sendFramed(this.env, request, response, accountName, (token) => accessPage(view, token));
  }

  @Post()
  @Page('accounts:write')
  async end(
    @CurrentPerson() { accountId }: SessionCaller,
    @SentForm() form: URLSearchParams,
    @Res() response: Response,
  ): Promise<void> {
    const id = form.get('grant');
    if (isUUID(id) && (await this.authorizationServerRepository.deleteOwnGrant(String(id), accountId)))
      this.tokensService.end([String(id)]);
    redirectTo(response, 'access');
  }
}
