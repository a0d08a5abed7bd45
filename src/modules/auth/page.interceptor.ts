import { PassThrough } from 'node:stream';
import { Injectable, StreamableFile } from '@nestjs/common';
import type { CallHandler, ExecutionContext, NestInterceptor } from '@nestjs/common';
import type { Request, Response } from 'express';
import { map, type Observable } from 'rxjs';
import { Env } from '../../config/env.js';
import { readOwnCookie, sendOwnCookie } from '../../platform/pages/browser-cookie.js';
import { formToken } from '../../platform/pages/form-token.js';
import { FramedPage, GROWING, PlainPage, Redirect, renderFramed } from '../../platform/pages/frame.js';
import { REDIRECT_HEADERS, type Page } from '../../platform/pages/page.js';
import { NOTHING_LEFT, ONCE_COOKIE, openOnce, sealedOnce, type ShownOnce } from '../../platform/pages/shown-once.js';
import { Vault } from '../../platform/vault/vault.js';
import type { Grant, SessionCaller } from './access.types.js';

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
        const { html, headers, grow } =
          result instanceof PlainPage
            ? result.content(() => formToken(this.env, request, response))
            : renderFramed(this.env, request, response, person ?? null, result);
        if (request.shownOnce) sendOwnCookie(this.env, response, NOTHING_LEFT);
        response.status(result.status).set(headers);
        return grow ? growing(html, grow) : html;
      }),
    );
  }
}

/** Streams a page that grows. The connection breaks off if the rest fails. */
function growing(html: string, grow: NonNullable<Page['grow']>): StreamableFile {
  const [head = '', between = '', end = ''] = html.split(String(GROWING));
  const stream = new PassThrough();
  stream.write(head);
  grow((part) => stream.destroyed || stream.write(part)).then(
    (rest) => stream.destroyed || stream.end(between + rest + end),
    (error: Error) => stream.destroy(error),
  );
  return new StreamableFile(stream, { type: 'text/html; charset=utf-8' });
}
