/**
 * The pages for people: `/login` and `/logout`, `/me`, and `/invite`, the page of an invitation link. They answer HTML. A form counts
 * with the token of its browser only ({@link PageFormsService}).
 */
import { Controller, Get, Post, Query, Req, Res, UseFilters } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import { isUUID } from 'class-validator';
import type { Request, Response } from 'express';
import { Env } from '../../config/env.js';
import { Public } from '../../platform/http/public.decorator.js';
import { formToken } from '../../platform/pages/form-token.js';
import { respondToForm } from '../../platform/pages/forms.js';
import { FramedPage, noticeOf, Redirect } from '../../platform/pages/frame.js';
import { requireOwnHost } from '../../platform/pages/own-host.js';
import { PageFormsService } from '../../platform/pages/page-forms.service.js';
import { PageFilter } from '../../platform/pages/page.filter.js';
import { redirectTo, sendPage } from '../../platform/pages/page.js';
import { CurrentPage, Form, Page, type PageRequest } from '../auth/access.decorator.js';
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
    else await this.sessionsService.signOut(request, response);
    redirectTo(response, './login');
  }

  /** Shows who is signed in. */
  @Get('me')
  @Page('accounts:read')
  showMe(@CurrentPage() page: PageRequest): Promise<FramedPage> {
    return this.renderMe(page, { notice: noticeOf(page.query.saved, DONE) });
  }

  /** Changes the password. */
  @Post('me')
  @Form('accounts:write')
  async changePassword(@CurrentPage() page: PageRequest, @Req() request: Request): Promise<FramedPage | Redirect> {
    const refusal = await this.passwordsService.change(request, page.person, page.form);
    return refusal === null ? new Redirect('me?saved') : this.renderMe(page, refusal);
  }

  /** Creates an API key of the person. It is in this response alone. */
  @Post('me/keys/create')
  @Form('accounts:write')
  createKey(@CurrentPage() page: PageRequest) {
    return this.respond(page, 'create', async ({ person, form }) =>
      this.renderMe(page, { made: await this.ownKeysService.make(person, person.accountId, form) }),
    );
  }

  /** Replaces an API key of the person. The new one is in this response alone. */
  @Post('me/keys/rotate')
  @Form('accounts:write')
  rotateKey(@CurrentPage() page: PageRequest) {
    return this.respond(page, 'rotate', async ({ person, form }) =>
      this.renderMe(page, { made: await this.ownKeysService.rotate(person, form) }),
    );
  }

  @Post('me/keys/revoke')
  @Form('accounts:write')
  revokeKey(@CurrentPage() page: PageRequest) {
    return this.respond(page, 'revoke', async ({ person, form }) => {
      await this.ownKeysService.revoke(person, form);
      return new Redirect('me?saved=revoked');
    });
  }

  /** Signs one browser of the person out. */
  @Post('me/browsers')
  @Form('accounts:write')
  async endBrowser(@CurrentPage() { form, person }: PageRequest): Promise<Redirect> {
    const id = form.get('browser');
    if (isUUID(id)) await this.sessionsService.endById(String(id), person.accountId);
    return new Redirect('me?saved=browser');
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

  private respond(page: PageRequest, name: string, work: (page: PageRequest) => Promise<FramedPage | Redirect>) {
    return respondToForm(
      name,
      page.form,
      () => work(page),
      ({ text, values }) => this.renderMe(page, { refusedKey: { form: values, fault: `${text}.` } }),
    );
  }

  private async renderMe(
    { person }: PageRequest,
    { status, ...outcome }: { status?: number } & Partial<Pick<MeView, 'notice' | 'fault' | 'made' | 'refusedKey'>>,
  ): Promise<FramedPage> {
    const [sessions, ownKeys, { memberships }] = await Promise.all([
      this.sessionsService.list(person.accountId),
      this.ownKeysService.list(person),
      this.membersService.organizationsOf(person.accountId),
    ]);
    const outcomes = { notice: null, fault: null, made: null, refusedKey: null, ...outcome };
    return new FramedPage(
      (token, root) => mePage({ ...person, token, root, sessions, ...ownKeys, memberships, ...outcomes }),
      status,
    );
  }
}
