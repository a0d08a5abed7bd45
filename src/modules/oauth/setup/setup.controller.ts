import { Controller, Get, Headers, Param, Post, Query, Req, Res, UseFilters } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { Env } from '../../../config/env.js';
import { BodyBudget } from '../../../platform/http/body/body-budget.js';
import { ApiErrors } from '../../../platform/http/api-docs.decorators.js';
import { Public } from '../../../platform/http/public.decorator.js';
import { readBody } from '../../../platform/http/body/request-body.js';
import { isSecret } from '../../../platform/http/secrets.js';
import { bindBrowser, readCookie, sendCookie } from '../../../platform/pages/browser-cookie.js';
import { PageFilter, requireOwnPage, sendPage } from '../../../platform/pages/page.js';
import { SetupPageError } from '../credentials.errors.js';
import { AuthorizationFlowService } from './authorization-flow.service.js';
import { CallbackQueryDto } from './callback.dto.js';
import { SetupLinksService } from './setup-links.service.js';
import { setupPage } from './setup-page.js';

/** The pages for people who authorize Slipway or enter values. They have no API key: the signed link gives access. */
@ApiExcludeController()
@Public()
@UseFilters(PageFilter)
@Controller()
export class SetupController {
  constructor(
    private readonly links: SetupLinksService,
    private readonly flow: AuthorizationFlowService,
    private readonly env: Env,
    private readonly bodies: BodyBudget,
  ) {}

  /** Shows the page of a link, and binds the browser to it. Changes nothing else. */
  @Get('setup/*path')
  @ApiErrors(404, 410)
  async show(
    @Param('path') path: string[],
    @Query() query: Record<string, unknown>,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const [subject, link] = this.links.verify(path.join('/'), query);
    const view = await subject.view(await subject.open(link));
    bindBrowser(this.env, request, response, link.id);
    sendPage(response, setupPage(view));
  }

  /** Handles the form of the page. */
  @Post('setup/*path')
  @ApiErrors(403, 404, 410)
  async submit(
    @Param('path') path: string[],
    @Query() query: Record<string, unknown>,
    @Headers('sec-fetch-site') site: string | undefined,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    requireOwnPage(site, () => SetupPageError.otherBrowser());
    const [subject, link] = this.links.verify(path.join('/'), query);
    this.bodies.admitStranger(request, response);
    const form = new URLSearchParams(await readBody(request, Infinity));
    const row = await subject.open(link);
    const cookie = readCookie(this.env, request.headers.cookie, link.id);
    if (!isSecret(cookie)) throw SetupPageError.otherBrowser();
    const answer = await subject.submit(row, form, cookie);
    if ('view' in answer) return sendPage(response, setupPage(answer.view), answer.status);
    sendCookie(this.env, response, answer.linkId, cookie);
    response.set({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' }).redirect(303, answer.redirect);
  }

  /** Handles the answer of an authorization server. */
  @Get('oauth/callback')
  @ApiErrors(400, 403, 410, 502)
  async callback(@Query() query: CallbackQueryDto, @Req() request: Request, @Res() response: Response): Promise<void> {
    const result = await this.flow.complete(query, (id) => readCookie(this.env, request.headers.cookie, id));
    sendPage(response, setupPage(result));
  }
}
