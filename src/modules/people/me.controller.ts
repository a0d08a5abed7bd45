import { Controller, Get, Post, Query, Req, Res, UseFilters } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { Env } from '../../config/env.js';
import { Public } from '../../platform/http/public.decorator.js';
import { formToken } from '../../platform/pages/form-token.js';
import { requireOwnHost } from '../../platform/pages/own-host.js';
import { PageFilter, redirectTo, sendPage } from '../../platform/pages/page.js';
import { PageFormsService } from './page-forms.service.js';
import { PasswordsService } from './passwords.service.js';
import { mePage } from './people-pages.js';
import type { SignedIn } from './people.types.js';
import { SessionsService } from './sessions.service.js';

/** The own page of a person who is signed in. */
@ApiExcludeController()
@Public()
@UseFilters(PageFilter)
@Controller()
export class MeController {
  constructor(
    private readonly env: Env,
    private readonly forms: PageFormsService,
    private readonly sessions: SessionsService,
    private readonly passwords: PasswordsService,
  ) {}

  /** Shows who is signed in; leads to the sign-in who is not. */
  @Get('me')
  async show(@Query('saved') saved: unknown, @Req() request: Request, @Res() response: Response): Promise<void> {
    requireOwnHost(request, this.env);
    const person = await this.sessions.current(request);
    if (!person) return redirectTo(response, './login?next=/me');
    const notice = saved === undefined ? null : 'Your password is saved. All other browsers are signed out.';
    await this.send(request, response, person, { notice });
  }

  /** Changes the password. */
  @Post('me')
  async change(@Req() request: Request, @Res() response: Response): Promise<void> {
    const form = await this.forms.read(request, response);
    const person = await this.sessions.current(request);
    if (!person) return redirectTo(response, './login?next=/me');
    const refusal = await this.passwords.change(request, person, form);
    if (refusal === null) return redirectTo(response, './me?saved');
    await this.send(request, response, person, refusal);
  }

  private async send(
    request: Request,
    response: Response,
    person: SignedIn,
    { status = 200, notice = null, fault = null }: { status?: number; notice?: string | null; fault?: string | null },
  ): Promise<void> {
    const sessions = await this.sessions.count(person.accountId);
    const hasPassword = await this.passwords.has(person.accountId);
    const token = formToken(this.env, request, response);
    sendPage(response, mePage(this.env, { token, ...person, sessions, hasPassword, notice, fault }), status);
  }
}
