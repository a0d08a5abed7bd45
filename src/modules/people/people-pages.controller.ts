/**
 * The pages for people: `/login` and `/logout`, `/me`, and `/invite`, the page of an invitation link. They answer HTML, and read
 * the session from its cookie. A form counts with the token of its browser only ({@link PageFormsService}).
 */
import { Controller, Get, Post, Query, Req, Res, UseFilters } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { Env } from '../../config/env.js';
import { Public } from '../../platform/http/public.decorator.js';
import { formToken } from '../../platform/pages/form-token.js';
import { requireOwnHost } from '../../platform/pages/own-host.js';
import { PageFilter, redirectTo, sendPage } from '../../platform/pages/page.js';
import { InvitationsService } from './invitations.service.js';
import { ownNext } from './own-next.js';
import { PageFormsService } from './page-forms.service.js';
import { PasswordsService } from './passwords.service.js';
import { invitationPage, loginPage, mePage } from './people-pages.js';
import type { SignedIn } from './people.types.js';
import { SessionsService } from './sessions.service.js';
import { SignInService } from './sign-in.service.js';

/** Pages on which people sign in, change their password and use an invitation. */
@ApiExcludeController()
@Public()
@UseFilters(PageFilter)
@Controller()
export class PeoplePagesController {
  constructor(
    private readonly env: Env,
    private readonly forms: PageFormsService,
    private readonly sessions: SessionsService,
    private readonly signIn: SignInService,
    private readonly passwords: PasswordsService,
    private readonly invitations: InvitationsService,
  ) {}

  /** Shows the form; leads on who is signed in already. */
  @Get('login')
  async showLogin(@Query('next') asked: unknown, @Req() request: Request, @Res() response: Response): Promise<void> {
    requireOwnHost(request, this.env);
    const next = ownNext(asked);
    if (await this.sessions.current(request)) return redirectTo(response, `.${next ?? '/me'}`);
    sendPage(
      response,
      loginPage(this.env, { token: formToken(this.env, request, response), next, name: '', fault: null }),
    );
  }

  /** Signs in with a password or an API key. */
  @Post('login')
  async login(@Req() request: Request, @Res() response: Response): Promise<void> {
    const form = await this.forms.read(request, response);
    const next = ownNext(form.get('next'));
    const refusal = await this.signIn.attempt(request, response, form);
    if (refusal === null) return redirectTo(response, `.${next ?? '/me'}`);
    const { status, fault, retryAfterSeconds } = refusal;
    if (retryAfterSeconds !== undefined) response.set('retry-after', String(retryAfterSeconds));
    const token = formToken(this.env, request, response);
    sendPage(response, loginPage(this.env, { token, next, name: form.get('name') ?? '', fault }), status);
  }

  /** Signs this browser out, or with the field `everywhere` all browsers of the person. */
  @Post('logout')
  async logout(@Req() request: Request, @Res() response: Response): Promise<void> {
    const form = await this.forms.read(request, response);
    if (form.has('everywhere')) await this.sessions.endEverywhere(request, response);
    else await this.sessions.end(request, response);
    redirectTo(response, './login');
  }

  /** Shows who is signed in; leads to the sign-in who is not. */
  @Get('me')
  async showMe(@Query('saved') saved: unknown, @Req() request: Request, @Res() response: Response): Promise<void> {
    requireOwnHost(request, this.env);
    const person = await this.sessions.current(request);
    if (!person) return redirectTo(response, './login?next=/me');
    const notice = saved === undefined ? null : 'Your password is saved. All other browsers are signed out.';
    await this.sendMe(request, response, person, { notice });
  }

  /** Changes the password. */
  @Post('me')
  async changePassword(@Req() request: Request, @Res() response: Response): Promise<void> {
    const form = await this.forms.read(request, response);
    const person = await this.sessions.current(request);
    if (!person) return redirectTo(response, './login?next=/me');
    const refusal = await this.passwords.change(request, person, form);
    if (refusal === null) return redirectTo(response, './me?saved');
    await this.sendMe(request, response, person, refusal);
  }

  /** Shows the form. Changes nothing, so that programs that look at links in mails do not use it up. */
  @Get('invite')
  async showInvitation(
    @Query('token') secret: unknown,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    requireOwnHost(request, this.env);
    const accountName = await this.invitations.open(secret);
    const token = formToken(this.env, request, response);
    sendPage(response, invitationPage(this.env, { token, accountName, fault: null }));
  }

  /** Sets the password, and signs in. */
  @Post('invite')
  async accept(@Req() request: Request, @Res() response: Response): Promise<void> {
    const form = await this.forms.read(request, response);
    const refused = await this.invitations.use(request, response, form);
    if (refused === null) return redirectTo(response, './me');
    const token = formToken(this.env, request, response);
    sendPage(response, invitationPage(this.env, { token, ...refused }), 400);
  }

  private async sendMe(
    request: Request,
    response: Response,
    person: SignedIn,
    { status = 200, notice = null, fault = null }: { status?: number; notice?: string | null; fault?: string | null },
  ): Promise<void> {
    const sessions = await this.sessions.count(person.accountId);
    const token = formToken(this.env, request, response);
    sendPage(response, mePage(this.env, { token, ...person, sessions, notice, fault }), status);
  }
}
