import { Controller, Get, Param, Post, Query, Req, Res, UseFilters } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { Env } from '../../../config/env.js';
import { parseUrl } from '../../../config/parse-url.js';
import { BodyBudget } from '../../../platform/http/body/body-budget.js';
import { ApiErrors } from '../../../platform/http/api-docs.decorators.js';
import { Public } from '../../../platform/http/public.decorator.js';
import { readBody } from '../../../platform/http/body/request-body.js';
import { isSecret } from '../../../platform/http/secrets.js';
import { bindBrowser, readCookie, sendCookie } from '../../../platform/pages/browser-cookie.js';
import { PageFilter, redirectTo, requireOwnPage, sendPage } from '../../../platform/pages/page.js';
import { SetupPageError } from '../credentials.errors.js';
import { AuthorizationFlowService } from './authorization-flow.service.js';
import { CallbackQueryDto } from './callback.dto.js';
import { SetupLinksService } from './setup-links.service.js';
import { setupPage, withEntered } from './setup-page.js';
import type { SetupAnswer, SetupView } from './setup.types.js';

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
    if (query.returnUrl !== undefined) {
      const returnUrl = allowedReturn(this.env, query.returnUrl);
      if (returnUrl === null) throw SetupPageError.wrongReturn();
      sendReturnUrl(this.env, response, link.id, returnUrl);
    }
    sendPage(response, setupPage(this.env, view));
  }

  /** Handles the form of the page. */
  @Post('setup/*path')
  @ApiErrors(403, 404, 410)
  async submit(
    @Param('path') path: string[],
    @Query() query: Record<string, unknown>,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    requireOwnPage(request, this.env, () => SetupPageError.otherBrowser());
    const [subject, link] = this.links.verify(path.join('/'), query);
    this.bodies.admitStranger(request, response);
    const form = new URLSearchParams(await readBody(request, Infinity));
    const row = await subject.open(link);
    const cookie = readCookie(this.env, request.headers.cookie, link.id);
    if (!isSecret(cookie)) throw SetupPageError.otherBrowser();
    const answer = await subject.submit(row, form, cookie);
    if ('view' in answer) {
      const { view, status } = answer;
      return this.finish(request, response, link.id, { view: withEntered(view, form), status });
    }
    sendCookie(this.env, response, answer.linkId, cookie);
    const returnUrl = readReturnUrl(this.env, request, link.id);
    if (returnUrl !== null) sendReturnUrl(this.env, response, answer.linkId, returnUrl);
    redirectTo(response, answer.redirect);
  }

  /** Handles the answer of an authorization server. Returns to the app after success and after a person's refusal. */
  @Get('oauth/callback')
  @ApiErrors(400, 403, 410, 502)
  async callback(@Query() query: CallbackQueryDto, @Req() request: Request, @Res() response: Response): Promise<void> {
    try {
      const cookieOf = (id: string) => readCookie(this.env, request.headers.cookie, id);
      const { view, linkId } = await this.flow.complete(query, cookieOf);
      this.finish(request, response, linkId, { view, status: 200 });
    } catch (error) {
      const refused = error instanceof SetupPageError ? error.refusedLinkId : undefined;
      const returnUrl = refused === undefined ? null : readReturnUrl(this.env, request, refused);
      if (returnUrl === null) throw error;
      redirectTo(response, returnUrl);
    }
  }

  /** Returns to the app after success, and shows a page where there is none or something is left to do. */
  private finish(request: Request, response: Response, linkId: string, { view, status }: ShownAnswer): void {
    const isDone = view.kind === 'connected' || view.kind === 'authorized';
    const returnUrl = isDone ? readReturnUrl(this.env, request, linkId) : null;
    if (returnUrl === null) sendPage(response, setupPage(this.env, view), status);
    else redirectTo(response, returnUrl);
  }
}

type ShownAnswer = Extract<SetupAnswer, { view: SetupView }>;

/** Cookies hold 4,096 bytes. */
const RETURN_CHARS_MAX = 2_000;

/** An address of an app that may be returned to; null for any other value. */
function allowedReturn({ setupReturnOrigins }: Env, value: unknown): string | null {
  const url = typeof value === 'string' && value.length <= RETURN_CHARS_MAX ? parseUrl(value) : null;
  return url && setupReturnOrigins?.includes(url.origin) ? url.href : null;
}

/** A cookie beside that of the link holds the address to return to: it survives the way over an authorization server. */
function sendReturnUrl(env: Env, response: Response, linkId: string, returnUrl: string): void {
  sendCookie(env, response, `${linkId}-return`, Buffer.from(returnUrl).toString('base64url'));
}

function readReturnUrl(env: Env, { headers }: Request, linkId: string): string | null {
  const cookie = readCookie(env, headers.cookie, `${linkId}-return`);
  return allowedReturn(env, Buffer.from(cookie ?? '', 'base64url').toString());
}
