import { Injectable, type CallHandler, type ExecutionContext, type NestInterceptor } from '@nestjs/common';
import type { Request, Response } from 'express';
import { map, type Observable } from 'rxjs';
import { Env } from '../../config/env.js';
import { FramedPage, Redirect, renderFramed } from '../../platform/pages/frame.js';
import { REDIRECT_HEADERS, rootFrom } from '../../platform/pages/page.js';
import type { Grant, SessionCaller } from './access.types.js';

/** Sends what the handler of a page returns: a `FramedPage` or a `Redirect`. */
@Injectable()
export class PageInterceptor implements NestInterceptor {
  constructor(private readonly env: Env) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const request = context.switchToHttp().getRequest<Request & { grant: Grant }>();
    const response = context.switchToHttp().getResponse<Response>();
    return next.handle().pipe(
      map((result: unknown) => {
        if (result instanceof Redirect) {
          response
            .status(303)
            .set(REDIRECT_HEADERS)
            .location(rootFrom(request.path) + result.path);
          return '';
        }
        if (!(result instanceof FramedPage)) return result;
        const { accountName } = request.grant.caller as SessionCaller;
        const { html, headers } = renderFramed(this.env, request, response, accountName, result);
        response.status(result.status).set(headers);
        return html;
      }),
    );
  }
}
