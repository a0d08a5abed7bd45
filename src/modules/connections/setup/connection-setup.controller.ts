import { Controller, Get, Headers, Param, Post, Query, Req, Res, UseFilters } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { Env } from '../../../config/env.js';
import { ApiErrors } from '../../../platform/http/api-docs.decorators.js';
import { Public } from '../../../platform/http/public.decorator.js';
import { readBody } from '../../../platform/http/request-body.js';
import { isSecret } from '../../../platform/http/secrets.js';
import { bindBrowser, readCookie, sendCookie } from '../../../platform/pages/browser-cookie.js';
import { requireOwnPage } from '../../../platform/pages/page.js';
import { PageFilter } from '../../../platform/pages/page.filter.js';
import { sendPage } from '../../../platform/pages/page.js';
import { SetupPageError } from '../../oauth/credentials.errors.js';
import { ConnectionSetupService, type SetupLink } from './connection-setup.service.js';

/** More than all values a connection may hold. */
const FORM_BYTES_MAX = 64 * 1024;

/** The setup page of connections, for people who hold no key: the signed link is what they show. */
@ApiExcludeController()
@Public()
@UseFilters(PageFilter)
@Controller('setup/connections/:id/:epoch')
export class ConnectionSetupController {
  constructor(
    private readonly setup: ConnectionSetupService,
    private readonly env: Env,
  ) {}

  /** Says what is to be authorized, or asks for what lacks. Programs that follow links change nothing by that. */
  @Get()
  @ApiErrors(404, 410)
  async show(
    @Param() { id, epoch }: Record<string, string>,
    @Query() query: Record<string, unknown>,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const link = linkOf(id, epoch, query);
    const page = await this.setup.view(link);
    bindBrowser(this.env, request, response, link.id);
    sendPage(response, page);
  }

  /** Leads to the authorization server, or takes the values. */
  @Post()
  @ApiErrors(403, 404, 410)
  async submit(
    @Param() { id, epoch }: Record<string, string>,
    @Query() query: Record<string, unknown>,
    @Headers('sec-fetch-site') site: string | undefined,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const body = new URLSearchParams(await readBody(request, FORM_BYTES_MAX));
    requireOwnPage(site, () => SetupPageError.otherBrowser());
    const link = linkOf(id, epoch, query);
    const cookie = readCookie(this.env, request.headers.cookie, link.id);
    if (!isSecret(cookie)) throw SetupPageError.otherBrowser();
    const answer = await this.setup.submit(link, body, cookie);
    if ('page' in answer) return sendPage(response, answer.page, answer.status);
    sendCookie(this.env, response, answer.linkId, cookie);
    response.set({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' }).redirect(303, answer.redirect);
  }
}

/** What no link of ours looks like is unknown before anything is looked up. */
function linkOf(id = '', epoch = '', { expires, signature }: Record<string, unknown>): SetupLink {
  if (!/^[0-9a-f-]{36}$/.test(id) || !/^[1-9]\d{0,9}$/.test(epoch)) throw SetupPageError.unknownLink();
  return { id, epoch: Number(epoch), expires, signature };
}
