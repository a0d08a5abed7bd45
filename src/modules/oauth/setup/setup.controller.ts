/**
 * Pages on which users authorize Slipway at an upstream, or enter values for one: `/setup/…` with a signature, and `/oauth/callback`.
 *
 * GET, POST and the callback require that the holder of the signed link can still `manage` the target, and that its credential is valid.
 * GET binds the browser to the link by a cookie and changes nothing else; POST needs the cookie, the form token and our own page as its
 * origin. `returnUrl` (origins of `SETUP_RETURN_ORIGINS`, kept in a second cookie) returns to an app after success, and after a denial at
 * the authorization server; a console page, `ui/…`, only after success.
 *
 * Errors are pages, never redirects to an unchecked address.
 */
import { Controller, Get, Post, Query } from '@nestjs/common';
import { ApiExcludeController } from '#api-docs';
import { Env } from '../../../config/env.js';
import { parseUrl } from '../../../config/parse-url.js';
import { ApiErrors } from '../../../platform/http/api-docs.decorators.js';
import { isSecret, newSecret } from '../../../platform/http/secrets.js';
import { readSetupCookie, setupCookie, type OwnCookie } from '../../../platform/pages/browser-cookie.js';
import { requireFormToken } from '../../../platform/pages/form-token.js';
import { PlainPage, type Redirect, RedirectAway } from '../../../platform/pages/frame.js';
import { CurrentPage, PublicPage, type PublicPageRequest } from '../../auth/access.decorator.js';
import { SessionsService } from '../../people/sessions.service.js';
import { SetupPageError } from '../credentials.errors.js';
import { AuthorizationsService } from '../authorizations.service.js';
import { CallbackQueryDto } from './callback.dto.js';
import { SetupLinksService } from './setup-links.service.js';
import { setupPage, withEntered } from './setup-page.js';
import type { SetupAnswer, SetupLink, SetupPageOwner, SetupView } from './setup.types.js';

type LinkRequest = PublicPageRequest<{ path: string[] }>;

const otherBrowser = () => SetupPageError.otherBrowser();

@ApiExcludeController()
@PublicPage({ refusal: otherBrowser, leavesToken: true })
@Controller()
export class SetupController {
  constructor(
    private readonly setupLinksService: SetupLinksService,
    private readonly authorizationsService: AuthorizationsService,
    private readonly env: Env,
    private readonly sessionsService: SessionsService,
  ) {}

  /** Shows the page of a link, and binds the browser to it. Changes nothing else. */
  @Get('setup/*path')
  @ApiErrors(403, 404, 410)
  async show(@CurrentPage() page: LinkRequest): Promise<PlainPage | Redirect> {
    const { params, query } = page;
    const [pageOwner, link] = this.setupLinksService.verify(params.path.join('/'), query);
    const row = await this.open(pageOwner, link);
    if (!(await this.isPersonOf(link, page))) return this.signIn(page);
    const view = await pageOwner.view(row);
    const secret = readSetupCookie(this.env, page.cookies, link.id);
    const cookies = [setupCookie(link.id, isSecret(secret) ? secret : newSecret())];
    if (query.returnUrl !== undefined) {
      const returnUrl = allowedReturn(this.env, query.returnUrl);
      if (returnUrl === null) throw SetupPageError.wrongReturn();
      cookies.push(returnCookie(link.id, returnUrl));
    }
    return this.render(view, { link, cookies });
  }

  /** Handles the form of the page. */
  @Post('setup/*path')
  @ApiErrors(403, 404, 410)
  async submit(@CurrentPage() page: LinkRequest): Promise<PlainPage | Redirect> {
    const { params, query, form, cookies } = page;
    const [pageOwner, link] = this.setupLinksService.verify(params.path.join('/'), query);
    const row = await this.open(pageOwner, link);
    if (!(await this.isPersonOf(link, page))) return this.signIn(page);
    requireFormToken(this.env, cookies, form, otherBrowser);
    const secret = readSetupCookie(this.env, cookies, link.id);
    if (!isSecret(secret)) throw otherBrowser();
    const answer = await pageOwner.submit(row, form, secret, link.holder);
    if ('view' in answer) {
      const { view, status } = answer;
      return this.finish(page, link, { view: withEntered(view, form), status });
    }
    // The right might have been revoked since: then the browser does not learn where to continue.
    await this.open(pageOwner, link);
    const returnUrl = this.readReturnUrl(page, link.id);
    const next = returnUrl === null ? [] : [returnCookie(answer.linkId, returnUrl)];
    return new RedirectAway(answer.redirect, [setupCookie(answer.linkId, secret), ...next]);
  }

  /** Handles the response of an authorization server. Returns to the app after success and after a user's denial. */
  @Get('oauth/callback')
  @ApiErrors(400, 403, 410, 502)
  async callback(
    @Query() query: CallbackQueryDto,
    @CurrentPage() page: PublicPageRequest,
  ): Promise<PlainPage | Redirect> {
    try {
      const cookieOf = (id: string) => readSetupCookie(this.env, page.cookies, id);
      const answer = await this.authorizationsService.complete(query, cookieOf);
      if ('redirect' in answer) return new RedirectAway(answer.redirect);
      return this.finish(page, { id: answer.linkId }, { view: answer.view, status: 200 });
    } catch (error) {
      const refused = error instanceof SetupPageError ? error.refusedLinkId : undefined;
      const returnUrl = refused === undefined ? null : this.readReturnUrl(page, refused);
      if (returnUrl === null || isOwnPage(this.env, returnUrl)) throw error;
      return new RedirectAway(returnUrl);
    }
  }

  /** Returns the target of a link. @throws SetupPageError, including when its holder can no longer use it */
  private async open(pageOwner: SetupPageOwner<unknown>, link: SetupLink): Promise<unknown> {
    const row = await pageOwner.open(link);
    const isOpen = await this.setupLinksService.isOpenTo(link.holder, (person) => pageOwner.mayUse(row, person));
    if (!isOpen) throw SetupPageError.usedLink();
    return row;
  }

  /**
   * Returns false if the user must sign in first.
   *
   * @throws SetupPageError if the browser is signed in as another account
   */
  private async isPersonOf({ holder }: SetupLink, { client }: LinkRequest): Promise<boolean> {
    if (!holder.needsSignIn) return true;
    const person = await this.sessionsService.current(client);
    // eslint-disable-next-line no-restricted-syntax -- The account that was asked to authorize: this alone gives it no rights.
    if (person && person.accountId !== holder.accountId) throw SetupPageError.otherPerson(person, this.env);
    return person !== null;
  }

  /** Redirects to the app, or shows a page if there is no app, or a step remains. */
  private finish(
    page: Pick<PublicPageRequest, 'cookies'>,
    link: SetupLink | Pick<SetupLink, 'id'>,
    { view, status }: ShownAnswer,
  ): PlainPage | Redirect {
    const isDone = view.kind === 'connected' || view.kind === 'authorized';
    const returnUrl = isDone ? this.readReturnUrl(page, link.id) : null;
    if (returnUrl !== null) return new RedirectAway(returnUrl);
    return this.render(view, { status, link: 'kind' in link ? link : undefined });
  }

  /** @param link the link of the page; its form posts to one of the same holder */
  private render(
    view: SetupView,
    { status, link, cookies }: { status?: number; link?: SetupLink; cookies?: OwnCookie[] },
  ): PlainPage {
    const epoch = 'epoch' in view ? view.epoch : undefined;
    const action = link && epoch !== undefined ? this.setupLinksService.url({ ...link, epoch }) : undefined;
    return new PlainPage((token) => setupPage(this.env, view, token, action), status, cookies);
  }

  private signIn({ originalUrl }: LinkRequest): Redirect {
    return new RedirectAway(`${this.env.baseUrl}/login?next=${encodeURIComponent(originalUrl)}`);
  }

  private readReturnUrl({ cookies }: Pick<PublicPageRequest, 'cookies'>, linkId: string): string | null {
    const cookie = readSetupCookie(this.env, cookies, `${linkId}-return`);
    return allowedReturn(this.env, Buffer.from(cookie ?? '', 'base64url').toString());
  }
}

type ShownAnswer = Extract<SetupAnswer, { view: SetupView }>;

/** Maximum length of a return address: cookies hold 4,096 bytes. */
const RETURN_CHARS_MAX = 2_000;

/** Returns an address of an app, or of one of our pages, to which the browser can return; null for any other value. */
function allowedReturn(env: Env, value: unknown): string | null {
  const isGiven = typeof value === 'string' && value !== '' && value.length <= RETURN_CHARS_MAX;
  const url = isGiven ? parseUrl(value, `${env.baseUrl}/`) : null;
  return url && (env.setupReturnOrigins?.includes(url.origin) || isOwnPage(env, url.href)) ? url.href : null;
}

/** @param url resolved: without dots, and with its host */
function isOwnPage({ baseUrl }: Env, url: string): boolean {
  return url.startsWith(new URL(`${baseUrl}/ui/`).href);
}

/** Returns a cookie that survives the redirect to an authorization server. */
function returnCookie(linkId: string, returnUrl: string): OwnCookie {
  return setupCookie(`${linkId}-return`, Buffer.from(returnUrl).toString('base64url'));
}
