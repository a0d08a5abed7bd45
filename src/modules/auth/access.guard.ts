import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { Request } from 'express';
import { ACCESS } from '../../platform/http/public.decorator.js';
import type { GrantedRequest } from './access.decorator.js';
import { AccessService } from './access.service.js';
import type { AccessRule } from './access.types.js';

/** Applies each route's declaration: key first, then ownership, before the body is validated. */
@Injectable()
export class AccessGuard implements CanActivate {
  constructor(
    private readonly reflector: Reflector,
    private readonly access: AccessService,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const declared = this.reflector.getAllAndOverride<AccessRule | 'public'>(ACCESS, [
      context.getHandler(),
      context.getClass(),
    ]);
    if (declared === 'public') return true;
    const request = context.switchToHttp().getRequest<Request & GrantedRequest>();
    const caller = await this.access.authenticate(request.headers.authorization);
    const param = (name: string | undefined) => (name === undefined ? undefined : String(request.params[name]));
    request.grant = await this.access.authorize(caller, declared, {
      owner: param(declared.owner),
      account: param(declared.account),
    });
    return true;
  }
}
