import { Controller, Get, Post, Query, Req, Res, UseFilters } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { Env } from '../../config/env.js';
import { Public } from '../../platform/http/public.decorator.js';
import { formToken } from '../../platform/pages/form-token.js';
import { requireOwnHost } from '../../platform/pages/own-host.js';
import { PageFilter, redirectTo, sendPage } from '../../platform/pages/page.js';
import { InvitationsService } from './invitations.service.js';
import { PageFormsService } from './page-forms.service.js';
import { invitationPage } from './people-pages.js';

/** The page of an invitation link. */
@ApiExcludeController()
@Public()
@UseFilters(PageFilter)
@Controller()
export class InviteController {
  constructor(
    private readonly env: Env,
    private readonly forms: PageFormsService,
    private readonly invitations: InvitationsService,
  ) {}

  /** Shows the form. Changes nothing, so that programs that look at links in mails do not use it up. */
  @Get('invite')
  async show(@Query('token') secret: unknown, @Req() request: Request, @Res() response: Response): Promise<void> {
    requireOwnHost(request, this.env);
    const accountName = await this.invitations.open(secret);
    const token = formToken(this.env, request, response);
    sendPage(response, invitationPage(this.env, { token, accountName, fault: null }));
  }

  /** Sets the password, and signs in. */
  @Post('invite')
  async submit(@Req() request: Request, @Res() response: Response): Promise<void> {
    const form = await this.forms.read(request, response);
    const refused = await this.invitations.use(request, response, form);
    if (refused === null) return redirectTo(response, './me');
    const token = formToken(this.env, request, response);
    sendPage(response, invitationPage(this.env, { token, ...refused }), 400);
  }
}
