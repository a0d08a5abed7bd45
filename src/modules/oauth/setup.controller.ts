import { Controller, Get, Headers, Param, Post, Query, Req, Res, UseFilters } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { Env } from '../../config/env.js';
import { ApiErrors } from '../../platform/http/api-docs.decorators.js';
import { Public } from '../../platform/http/public.decorator.js';
import { bindBrowser, readCookie } from '../../platform/pages/browser-cookie.js';
import { requireOwnPage } from '../../platform/pages/page.js';
import { PageFilter } from '../../platform/pages/page.filter.js';
import { sendPage } from '../../platform/pages/page.js';
import { CallbackQueryDto } from './callback.dto.js';
import { SetupPageError } from './credentials.errors.js';
import { donePage, setupPage } from './setup-page.js';
import { SetupService } from './setup.service.js';

/** Pages for the person who authorizes Slipway at an MCP server. They hold no key: the link is what they show. */
@ApiExcludeController()
@Public()
@UseFilters(PageFilter)
@Controller()
export class SetupController {
  constructor(
    private readonly setup: SetupService,
    private readonly env: Env,
  ) {}

  /** Says what is to be authorized, and where. Programs that follow links change nothing by that. */
  @Get('setup/:token')
  @ApiErrors(404, 410)
  async show(@Param('token') token: string, @Req() request: Request, @Res() response: Response): Promise<void> {
    const view = await this.setup.view(token);
    bindBrowser(this.env, request, response, view.pendingId);
    sendPage(response, setupPage(view));
  }

  /** Leads to the authorization server. */
  @Post('setup/:token')
  @ApiErrors(403, 404, 410)
  async start(
    @Param('token') token: string,
    @Headers('sec-fetch-site') site: string | undefined,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    requireOwnPage(site, () => SetupPageError.otherBrowser());
    const url = await this.setup.start(token, (id) => readCookie(this.env, request.headers.cookie, id));
    response.set({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' }).redirect(303, url);
  }

  /** Takes the answer of the authorization server. */
  @Get('oauth/callback')
  @ApiErrors(400, 403, 410, 502)
  async callback(@Query() query: CallbackQueryDto, @Req() request: Request, @Res() response: Response): Promise<void> {
    const result = await this.setup.complete(query, (id) => readCookie(this.env, request.headers.cookie, id));
    sendPage(response, donePage(result));
  }
}
