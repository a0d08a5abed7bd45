import { Controller, Get, Post, Query, Req, Res, UseFilters } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { Env } from '../../config/env.js';
import { Public } from '../../platform/http/public.decorator.js';
import { formToken } from '../../platform/pages/form-token.js';
import { requireOwnHost } from '../../platform/pages/own-host.js';
import { PageFilter, redirectTo, sendPage } from '../../platform/pages/page.js';
import { loginPage } from './people-pages.js';
import { ownNext } from './own-next.js';
import { PageFormsService } from './page-forms.service.js';
import { SessionsService } from './sessions.service.js';
import { SignInService } from './sign-in.service.js';

/** Signing in and out, for people in a browser. */
@ApiExcludeController()
@Public()
@UseFilters(PageFilter)
@Controller()
export class LoginController {
  constructor(
    private readonly env: Env,
    private readonly forms: PageFormsService,
    private readonly sessions: SessionsService,
    private readonly signIn: SignInService,
  ) {}

  /** Shows the form; leads on who is signed in already. */
  @Get('login')
  async show(@Query('next') asked: unknown, @Req() request: Request, @Res() response: Response): Promise<void> {
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
  async submit(@Req() request: Request, @Res() response: Response): Promise<void> {
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
}
