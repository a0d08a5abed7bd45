/**
 * Pages for people who authorize this service at an upstream, or enter values for one: `/setup/…` with a signature, and
 * `/oauth/callback`.
 *
 * The signed link gives access while the account that read it can `manage` the target and the credential that read it is
 * valid: GET, POST and the callback ask for both. One that an MCP client elicited opens only in a browser that is signed in as
 * the account, and leads to the sign-in otherwise. GET binds the browser to the link by a cookie and changes nothing else. POST needs the cookie,
 * the form token and our own page as its origin. `returnUrl` (origins of `SETUP_RETURN_ORIGINS`) leads back to an app
 * after success, and after a refusal at the authorization server; a second cookie keeps it on the way. One that names a page of
 * the console, `ui/…` below our own address, leads there after success alone: a refusal is a page of ours, with its reason.
 *
 * Faults are pages with 400, 403, 404, 410 or 502, never redirects to an unchecked address.
 */
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
import { formToken, requireFormToken } from '../../../platform/pages/form-token.js';
import { requireOwnHost } from '../../../platform/pages/own-host.js';
import { PageFilter } from '../../../platform/pages/page.filter.js';
import { redirectTo, requireOwnPage, sendPage } from '../../../platform/pages/page.js';
import { SessionsService } from '../../people/sessions.service.js';
import { SetupPageError } from '../credentials.errors.js';
import { AuthorizationsService } from '../authorizations.service.js';
import { CallbackQueryDto } from './callback.dto.js';
import { SetupLinksService } from './setup-links.service.js';
import { setupPage, withEntered } from './setup-page.js';
import type { SetupAnswer, SetupLink, SetupPageOwner, SetupView } from './setup.types.js';

/** Pages of set-up links, and the answer of authorization servers. */
@ApiExcludeController()
@Public()
@UseFilters(PageFilter)
@Controller()
export class SetupController {
  constructor(
    private readonly setupLinksService: SetupLinksService,
    private readonly authorizationsService: AuthorizationsService,
    private readonly env: Env,
    private readonly bodyBudget: BodyBudget,
    private readonly sessionsService: SessionsService,
  ) {}

  /** Shows the page of a link, and binds the browser to it. Changes nothing else. */
  @Get('setup/*path')
  @ApiErrors(403, 404, 410)
  async show(
    @Param('path') path: string[],
    @Query() query: Record<string, unknown>,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    requireOwnHost(request, this.env);
    const [pageOwner, link] = this.setupLinksService.verify(path.join('/'), query);
    const row = await this.open(pageOwner, link);
    if (!(await this.isPersonOf(link, request))) return signIn(this.env, request, response);
    const view = await pageOwner.view(row);
    bindBrowser(this.env, request, response, link.id);
    if (query.returnUrl !== undefined) {
      const returnUrl = allowedReturn(this.env, query.returnUrl);
      if (returnUrl === null) throw SetupPageError.wrongReturn();
      sendReturnUrl(this.env, response, link.id, returnUrl);
    }
    this.send(request, response, view, { link });
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
    requireOwnHost(request, this.env);
    requireOwnPage(request, this.env, () => SetupPageError.otherBrowser());
    const [pageOwner, link] = this.setupLinksService.verify(path.join('/'), query);
    this.bodyBudget.admitStranger(request, response);
    const form = new URLSearchParams(await readBody(request, Infinity));
    const row = await this.open(pageOwner, link);
    if (!(await this.isPersonOf(link, request))) return signIn(this.env, request, response);
    requireFormToken(this.env, request, form, () => SetupPageError.otherBrowser());
    const cookie = readCookie(this.env, request.headers.cookie, link.id);
    if (!isSecret(cookie)) throw SetupPageError.otherBrowser();
    const answer = await pageOwner.submit(row, form, cookie, link.holder);
    if ('view' in answer) {
      const { view, status } = answer;
      return this.finish(request, response, link, { view: withEntered(view, form), status });
    }
    // The right may have been revoked since: then the browser does not learn where to continue.
    await this.open(pageOwner, link);
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
      const { view, linkId } = await this.authorizationsService.complete(query, cookieOf);
      this.finish(request, response, { id: linkId }, { view, status: 200 });
    } catch (error) {
      const refused = error instanceof SetupPageError ? error.refusedLinkId : undefined;
      const returnUrl = refused === undefined ? null : readReturnUrl(this.env, request, refused);
      if (returnUrl === null || isOwnPage(this.env, returnUrl)) throw error;
      redirectTo(response, returnUrl);
    }
  }

  /** The target of a link. @throws SetupPageError also if its holder can no longer use it */
  private async open(pageOwner: SetupPageOwner<unknown>, link: SetupLink): Promise<unknown> {
    const row = await pageOwner.open(link);
    const isOpen = await this.setupLinksService.isOpenTo(link.holder, (person) => pageOwner.mayUse(row, person));
    if (!isOpen) throw SetupPageError.usedLink();
    return row;
  }

  /**
   * True if the browser may use a link: one that needs no sign-in, or one of the account that it is signed in as. False for a
   * browser that has to sign in.
   *
   * @throws SetupPageError if it is signed in as another account
   */
  private async isPersonOf({ holder }: SetupLink, request: Request): Promise<boolean> {
    if (!holder.needsSignIn) return true;
    const person = await this.sessionsService.current(request);
    // eslint-disable-next-line no-restricted-syntax -- The account that was asked: it has no right to a thing by that.
    if (person && person.accountId !== holder.accountId) throw SetupPageError.otherPerson(person, this.env);
    return person !== null;
  }

  /** Returns to the app after success, and shows a page where there is none or something is left to do. */
  private finish(
    request: Request,
    response: Response,
    link: SetupLink | Pick<SetupLink, 'id'>,
    { view, status }: ShownAnswer,
  ): void {
    const isDone = view.kind === 'connected' || view.kind === 'authorized';
    const returnUrl = isDone ? readReturnUrl(this.env, request, link.id) : null;
    if (returnUrl === null) this.send(request, response, view, { status, link: 'kind' in link ? link : undefined });
    else redirectTo(response, returnUrl);
  }

  /** @param link the link of the page; its form posts to one of the same holder */
  private send(
    request: Request,
    response: Response,
    view: SetupView,
    { status = 200, link }: { status?: number; link?: SetupLink },
  ): void {
    const epoch = 'epoch' in view ? view.epoch : undefined;
    const action = link && epoch !== undefined ? this.setupLinksService.url({ ...link, epoch }) : undefined;
    const token = () => formToken(this.env, request, response);
    sendPage(response, setupPage(this.env, view, token, action), status);
  }
}

/** Leads to the sign-in, and from there to the page that was asked for. */
function signIn({ baseUrl }: Env, request: Request, response: Response): void {
  redirectTo(response, `${baseUrl}/login?next=${encodeURIComponent(request.originalUrl)}`);
}

type ShownAnswer = Extract<SetupAnswer, { view: SetupView }>;

/** Cookies hold 4,096 bytes. */
const RETURN_CHARS_MAX = 2_000;

/** An address of an app, or of a page of ours, that may be returned to; null for any other value. */
function allowedReturn(env: Env, value: unknown): string | null {
  const isGiven = typeof value === 'string' && value !== '' && value.length <= RETURN_CHARS_MAX;
  const url = isGiven ? parseUrl(value, `${env.baseUrl}/`) : null;
  return url && (env.setupReturnOrigins?.includes(url.origin) || isOwnPage(env, url.href)) ? url.href : null;
}

/** @param url resolved: without dots, and with its host */
function isOwnPage({ baseUrl }: Env, url: string): boolean {
  return url.startsWith(new URL(`${baseUrl}/ui/`).href);
}

/** A cookie beside that of the link holds the address to return to: it survives the way over an authorization server. */
function sendReturnUrl(env: Env, response: Response, linkId: string, returnUrl: string): void {
  sendCookie(env, response, `${linkId}-return`, Buffer.from(returnUrl).toString('base64url'));
}

function readReturnUrl(env: Env, { headers }: Request, linkId: string): string | null {
  const cookie = readCookie(env, headers.cookie, `${linkId}-return`);
  return allowedReturn(env, Buffer.from(cookie ?? '', 'base64url').toString());
}
