import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { Request, Response } from 'express';
import { Env } from '../../config/env.js';
import { BodyBudget } from '../../platform/http/body/body-budget.js';
import { ACCESS } from '../../platform/http/public.decorator.js';
import { readJsonBody } from '../../platform/http/body/request-body.js';
import { OpenRequests } from '../../platform/http/open-requests.js';
import { SignedUrls } from '../../platform/http/signed-urls.js';
import { requireOwnHost } from '../../platform/pages/own-host.js';
import { clientContextOf } from '../../platform/pages/client-context.js';
import {
  isMultipart,
  PageFormsService,
  type FormRules,
  type SentForm,
} from '../../platform/pages/page-forms.service.js';
import type { BrowserRequest } from '../../platform/pages/page.filter.js';
import { PUBLIC_PAGE, type GrantedRequest } from './access.decorator.js';
import { ANONYMOUS, type AccessRule } from './access.types.js';
import { Admission } from './admission.service.js';
import { RequestLimits } from './request-limits.service.js';

/** Public routes of probes and other Slipway processes, which no limit must reject. */
const UNLIMITED = /^\/(?:health|ready|metrics|internal)(?:\/|$)/;

/**
 * Applies the access rule of each route, first the key and then ownership, and reads a JSON body only after both. It reads the form of
 * every page request that can change data, so no handler can forget its token.
 */
@Injectable()
export class AccessGuard implements CanActivate {
  constructor(
    private readonly reflector: Reflector,
    private readonly admission: Admission,
    private readonly signedUrls: SignedUrls,
    private readonly bodyBudget: BodyBudget,
    private readonly requestLimits: RequestLimits,
    private readonly pageFormsService: PageFormsService,
    private readonly env: Env,
    private readonly openRequests: OpenRequests,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const route = [context.getHandler(), context.getClass()];
    const declared = this.reflector.getAllAndOverride<AccessRule | 'public'>(ACCESS, route);
    const request = context
      .switchToHttp()
      .getRequest<Request & GrantedRequest & BrowserRequest & { sent?: SentForm }>();
    const response = context.switchToHttp().getResponse<Response>();
    if (declared === 'public') {
      if (!UNLIMITED.test(request.path)) this.requestLimits.admitStranger(request, response);
      const rules = this.reflector.getAllAndOverride<FormRules | undefined>(PUBLIC_PAGE, route);
      if (rules) await this.readPage(request, response, rules);
      return true;
    }
    if (declared.signed && this.signedUrls.isSigned(request.path, request.query)) {
      request.grant = { caller: ANONYMOUS, isSigned: true };
      return true;
    }
    const parts = isMultipart(request) ? declared.parts : undefined;
    if (declared.page) {
      if (isForm(request)) this.requestLimits.admitStranger(request, response);
      await this.readPage(request, response, { parts });
    }
    request.grant = await this.admission.admit(request, response, declared);
    this.openRequests.removeOnClose(request, response);
    const { caller } = request.grant;
    if (caller === ANONYMOUS || (declared.page && !parts)) return true;
    this.bodyBudget.admit(request, response, caller.accountId);
    if (parts) {
      request.sent = await this.pageFormsService.readParts(request, parts);
      return true;
    }
    request.body = await readJsonBody(request);
    return true;
  }

  private async readPage(request: Request & BrowserRequest, response: Response, rules: FormRules): Promise<void> {
    requireOwnHost(request, this.env);
    request.client = clientContextOf(request, this.env);
    if (isForm(request)) request.body = await this.pageFormsService.read(request, response, rules);
  }
}

function isForm({ method }: Request): boolean {
  return method !== 'GET' && method !== 'HEAD';
}
