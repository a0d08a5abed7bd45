/**
 * The pages for people: `/login` and `/logout`, `/me`, and `/invite`, the page of an invitation link. They answer HTML. A form counts
 * with the token of its browser only ({@link PageFormsService}).
 */
import { Controller, Get, Post, Query, Req, Res, UseFilters } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import { isUUID } from 'class-validator';
import type { Request, Response } from 'express';
import { Env } from '../../config/env.js';
import { DomainError, statusOf } from '../../platform/errors/domain-error.js';
import { Public } from '../../platform/http/public.decorator.js';
import { formToken } from '../../platform/pages/form-token.js';
import { noticeOf, sendFramed } from '../../platform/pages/frame.js';
import { requireOwnHost } from '../../platform/pages/own-host.js';
import type { Html } from '../../platform/pages/html.js';
import { PageFormsService } from '../../platform/pages/page-forms.service.js';
import { PageFilter, redirectTo, rootFrom, sendPage } from '../../platform/pages/page.js';
import { CurrentPerson, Page, SentForm } from '../auth/access.decorator.js';
import type { SessionCaller } from '../auth/access.types.js';
import { MembersService } from '../auth/members.service.js';
import { InvitationsService } from './invitations.service.js';
import { ownNext } from './own-next.js';
import { PasswordsService } from './passwords.service.js';
import { OwnKeysService } from './own-keys.service.js';
import { invitationPage, joinPage, mePage, type MeView } from './people-pages.js';
import type { SignedIn } from './people.types.js';
import { SessionsService } from './sessions.service.js';
import { SignInService } from './sign-in.service.js';

/** Sentences for the word in the address after a form; without one a password was saved. */
const DONE: Record<string, string> = {
  '': 'Your password is saved. All other browsers are signed out.',
  revoked: 'The key is revoked. What used it is refused.',
  browser: 'The browser is signed out.',
  left: 'You have left the organization.',
};

/** Pages on which people sign in, change their password and use an invitation. */
@ApiExcludeController()
@Public()
@UseFilters(PageFilter)
@Controller()
export class PeoplePagesController {
  constructor(
    private readonly env: Env,
    private readonly pageFormsService: PageFormsService,
    private readonly sessionsService: SessionsService,
    private readonly signInService: SignInService,
    private readonly passwordsService: PasswordsService,
    private readonly invitationsService: InvitationsService,
    private readonly ownKeysService: OwnKeysService,
    private readonly membersService: MembersService,
  ) {}

  /** Shows the form; leads on who is signed in already. */
  @Get('login')
  async showLogin(@Query('next') nextUrl: unknown, @Req() request: Request, @Res() response: Response): Promise<void> {
    requireOwnHost(request, this.env);
    const next = ownNext(nextUrl);
    if (await this.sessionsService.current(request)) return redirectTo(response, `.${next ?? '/ui/'}`);
    this.signInService.show(request, response, { next, name: '', fault: null });
  }

  /** Signs in with a password or an API key. */
  @Post('login')
  async login(@Req() request: Request, @Res() response: Response): Promise<void> {
    const form = await this.pageFormsService.read(request, response);
    const next = ownNext(form.get('next'));
    const refusal = await this.signInService.attempt(request, response, form);
    if (refusal === null) return redirectTo(response, `.${next ?? '/ui/'}`);
    const { status, fault, retryAfterSeconds } = refusal;
    if (retryAfterSeconds !== undefined) response.set('retry-after', String(retryAfterSeconds));
    this.signInService.show(request, response, { next, name: form.get('name') ?? '', fault }, status);
  }

  /** Signs this browser out, or with the field `everywhere` all browsers of the person. */
  @Post('logout')
  async logout(@Req() request: Request, @Res() response: Response): Promise<void> {
    const form = await this.pageFormsService.read(request, response);
    if (form.has('everywhere')) await this.sessionsService.endEverywhere(request, response);
    else await this.sessionsService.end(request, response);
    redirectTo(response, './login');
  }

  /** Shows who is signed in. */
  @Get('me')
  @Page('accounts:read')
  async showMe(
    @CurrentPerson() person: SessionCaller,
    @Query('saved') saved: unknown,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    await this.sendMe(request, response, person, { notice: noticeOf(saved, DONE) });
  }

  /** Changes the password. */
  @Post('me')
  @Page('accounts:write')
  async changePassword(
    @CurrentPerson() person: SessionCaller,
    @SentForm() form: URLSearchParams,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const refusal = await this.passwordsService.change(request, person, form);
    if (refusal === null) return redirectTo(response, './me?saved');
    await this.sendMe(request, response, person, refusal);
  }

  /** Makes, rotates or revokes an API key of the person. A new one is in this answer alone. */
  @Post('me/keys')
  @Page('accounts:write')
  async changeKeys(
    @CurrentPerson() person: SessionCaller,
    @SentForm() form: URLSearchParams,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    try {
      const newKey = await this.ownKeysService.change(person, form);
      if (newKey === null) return redirectTo(response, '../me?saved=revoked');
      await this.sendMe(request, response, person, { made: newKey });
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      await this.sendMe(request, response, person, {
        status: statusOf[error.kind],
        refusedKey: { form, fault: error.message },
      });
    }
  }

  /** Signs one browser of the person out. */
  @Post('me/browsers')
  @Page('accounts:write')
  async endBrowser(
    @CurrentPerson() { accountId }: SessionCaller,
    @SentForm() form: URLSearchParams,
    @Res() response: Response,
  ): Promise<void> {
    const id = form.get('browser');
    if (isUUID(id)) await this.sessionsService.endById(String(id), accountId);
    redirectTo(response, '../me?saved=browser');
  }

  /** Shows the form. Changes nothing, so that programs that look at links in mails do not use it up. */
  @Get('invite')
  async showInvitation(@Req() request: Request, @Res() response: Response): Promise<void> {
    requireOwnHost(request, this.env);
    await this.sendInvitation(request, response, await this.sessionsService.current(request), { fault: null });
  }

  /** Sets the password, and signs in; or joins the organization. */
  @Post('invite')
  async accept(@Req() request: Request, @Res() response: Response): Promise<void> {
    const form = await this.pageFormsService.read(request, response);
    const person = await this.sessionsService.current(request);
    const fault = await this.invitationsService.use(request, response, form, person);
    if (fault === null) return redirectTo(response, './ui/');
    await this.sendInvitation(request, response, person, { fault, name: form.get('name') ?? '' }, 400);
  }

  private async sendInvitation(
    request: Request,
    response: Response,
    person: SignedIn | null,
    { fault, name = '' }: { fault: string | null; name?: string },
    status = 200,
  ): Promise<void> {
    const { accountName, role } = await this.invitationsService.open(request.query.token);
    const token = formToken(this.env, request, response);
    const page =
      role === null
        ? invitationPage(this.env, { token, accountName, fault })
        : joinPage(this.env, {
            ...{ token, organization: accountName, role, person, name, fault },
            next: request.originalUrl,
          });
    sendPage(response, page, status);
  }

  private async sendMe(
    request: Request,
    response: Response,
    person: SessionCaller,
    {
      status = 200,
      ...outcome
    }: { status?: number } & Partial<Pick<MeView, 'notice' | 'fault' | 'made' | 'refusedKey'>>,
  ): Promise<void> {
    const [sessions, ownKeys, { memberships }] = await Promise.all([
      this.sessionsService.list(person.accountId),
      this.ownKeysService.of(person),
      this.membersService.organizationsOf(person.accountId),
    ]);
    const outcomes = { notice: null, fault: null, made: null, refusedKey: null, ...outcome };
    const content = (token: Html) =>
      mePage({ ...person, token, root: rootFrom(request.path), sessions, ...ownKeys, memberships, ...outcomes });
    sendFramed(this.env, request, response, person.accountName, content, status);
  }
}
