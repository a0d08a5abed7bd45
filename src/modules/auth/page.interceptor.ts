import { Injectable, type CallHandler, type ExecutionContext, type NestInterceptor } from '@nestjs/common';
import type { Request, Response } from 'express';
import { map, type Observable } from 'rxjs';
import { Env } from '../../config/env.js';
import { readOwnCookie, sendOwnCookie } from '../../platform/pages/browser-cookie.js';
import { formToken } from '../../platform/pages/form-token.js';
import { FramedPage, PlainPage, Redirect, renderFramed } from '../../platform/pages/frame.js';
import { REDIRECT_HEADERS } from '../../platform/pages/page.js';
import { NOTHING_LEFT, ONCE_COOKIE, openOnce, sealedOnce, type ShownOnce } from '../../platform/pages/shown-once.js';
import { Vault } from '../../platform/vault/vault.js';
import type { Grant, SessionCaller } from './access.types.js';

/** Sends what the handler of a page returns: a `FramedPage`, a `PlainPage` or a `Redirect`. */
@Injectable()
export class PageInterceptor implements NestInterceptor {
  constructor(
    private readonly env: Env,
    private readonly vault: Vault,
  ) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const request = context.switchToHttp().getRequest<Request & { grant?: Grant; shownOnce?: ShownOnce | null }>();
    const response = context.switchToHttp().getResponse<Response>();
    const person = request.grant?.caller as SessionCaller | undefined;
    const sealed = readOwnCookie(this.env, request.headers.cookie, ONCE_COOKIE);
    request.shownOnce = person ? openOnce(this.vault, person.accountId, request.path, sealed) : null;
    return next.handle().pipe(
      map((result: unknown) => {
        if (result instanceof Redirect || result instanceof PlainPage) {
          for (const cookie of result.cookies) sendOwnCookie(this.env, response, cookie);
        }
        if (result instanceof Redirect) {
          if (result.once && person) {
            const [path] = result.path.split('?');
            sendOwnCookie(this.env, response, sealedOnce(this.vault, person.accountId, path, result.once));
          }
          response.status(303).set(REDIRECT_HEADERS).location(result.locationFrom(request.path));
          return '';
        }
        if (!(result instanceof FramedPage || result instanceof PlainPage)) return result;
        const { html, headers } =
          result instanceof PlainPage
            ? result.content(() => formToken(this.env, request, response))
            : renderFramed(this.env, request, response, person ?? null, result);
        if (request.shownOnce) sendOwnCookie(this.env, response, NOTHING_LEFT);
        response.status(result.status).set(headers);
        return html;
      }),
    );
  }
}
