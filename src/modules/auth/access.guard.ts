import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { Request, Response } from 'express';
import { BodyBudget } from '../../platform/http/body/body-budget.js';
import { ACCESS } from '../../platform/http/public.decorator.js';
import { readJsonBody } from '../../platform/http/body/request-body.js';
import { SignedUrls } from '../../platform/http/signed-urls.js';
import type { GrantedRequest } from './access.decorator.js';
import { AccessService } from './access.service.js';
import { ANONYMOUS, type AccessRule, type Caller } from './access.types.js';
import { RequestLimits } from './request-limits.service.js';

/** Public routes of probes and of other processes of the service, which no limit may refuse. */
const UNLIMITED = /^\/(?:health|ready|metrics|internal)(?:\/|$)/;

/**
 * Applies the access rule of each route: first the key, then the ownership. Reads a JSON body only after both, for callers
 * with a key.
 */
@Injectable()
export class AccessGuard implements CanActivate {
  constructor(
    private readonly reflector: Reflector,
    private readonly access: AccessService,
    private readonly urls: SignedUrls,
    private readonly bodies: BodyBudget,
    private readonly limits: RequestLimits,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const declared = this.reflector.getAllAndOverride<AccessRule | 'public'>(ACCESS, [
      context.getHandler(),
      context.getClass(),
    ]);
    const request = context.switchToHttp().getRequest<Request & GrantedRequest>();
    const response = context.switchToHttp().getResponse<Response>();
    if (declared === 'public') {
      if (!UNLIMITED.test(request.path)) this.limits.admitStranger(request, response);
      return true;
    }
    if (declared.signed && this.urls.opens(request.path, request.query)) {
      request.grant = { caller: ANONYMOUS, isSigned: true };
      return true;
    }
    let caller: Caller;
    try {
      caller = await this.access.authenticate(request, declared);
    } catch (error) {
      throw await this.limits.refusal(error, request, response);
    }
    this.limits.admit(request, caller, response);
    const param = (name: string | undefined) => (name === undefined ? undefined : String(request.params[name]));
    request.grant = await this.access.authorize(caller, declared, {
      owner: param(declared.owner),
      account: param(declared.account),
      connectionId: request.params.connectionId as string | undefined,
    });
    if (caller === ANONYMOUS) return true;
    this.bodies.admit(request, response, caller.accountId);
    request.body = await readJsonBody(request);
    return true;
  }
}
