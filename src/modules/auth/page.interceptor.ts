import { Injectable, type CallHandler, type ExecutionContext, type NestInterceptor } from '@nestjs/common';
import type { Request, Response } from 'express';
import { map, type Observable } from 'rxjs';
import { Env } from '../../config/env.js';
import { sendOwnCookie } from '../../platform/pages/browser-cookie.js';
import { formToken } from '../../platform/pages/form-token.js';
import { FramedPage, PlainPage, Redirect, renderFramed } from '../../platform/pages/frame.js';
import { REDIRECT_HEADERS } from '../../platform/pages/page.js';
import type { Grant, SessionCaller } from './access.types.js';

/** Sends what the handler of a page returns: a `FramedPage`, a `PlainPage` or a `Redirect`. */
@Injectable()
export class PageInterceptor implements NestInterceptor {
  constructor(private readonly env: Env) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const request = context.switchToHttp().getRequest<Request & { grant: Grant }>();
    const response = context.switchToHttp().getResponse<Response>();
    return next.handle().pipe(
      map((result: unknown) => {
        if (result instanceof Redirect || result instanceof PlainPage) {
          for (const cookie of result.cookies) sendOwnCookie(this.env, response, cookie);
        }
        if (result instanceof Redirect) {
          response.status(303).set(REDIRECT_HEADERS).location(result.locationFrom(request.path));
          return '';
        }
        if (!(result instanceof FramedPage || result instanceof PlainPage)) return result;
        const { html, headers } =
          result instanceof PlainPage
            ? result.content(() => formToken(this.env, request, response))
            : renderFramed(this.env, request, response, (request.grant.caller as SessionCaller).accountName, result);
        response.status(result.status).set(headers);
        return html;
      }),
    );
  }
}
