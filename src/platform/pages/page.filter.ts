import { Catch, Logger, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Env } from '../../config/env.js';
import { DomainError, statusOf, type ErrorKind } from '../errors/domain-error.js';
import { domainErrorOf } from '../errors/error-body.js';
import { logFailure } from '../errors/log-failure.js';
import type { ClientContext } from './client-context.js';
import { notice } from './components.js';
import { FramedPage, NothingHere, renderFramed, type SignedIn } from './frame.js';
import { messagePage, PageError, redirectTo, sendPage } from './page.js';

const TITLES: Partial<Record<ErrorKind, string>> = { not_found: 'Nothing here', forbidden: 'Not for your account' };

export interface BrowserRequest {
  client: ClientContext;
  signedIn?: SignedIn;
}

/**
 * Sends a page instead of JSON. A signed-in user gets the frame, and the same page for missing and hidden resources.
 */
@Catch()
export class PageFilter implements ExceptionFilter {
  private readonly logger = new Logger('http');

  constructor(private readonly env: Env) {}

  catch(thrown: unknown, host: ArgumentsHost): void {
    const request = host.switchToHttp().getRequest<Request & BrowserRequest>();
    const response = host.switchToHttp().getResponse<Response>();
    const error = domainErrorOf(thrown) ?? thrown;
    logFailure(this.logger, error, request);
    const failure = error instanceof DomainError ? error : null;
    if (failure?.location !== undefined) return redirectTo(response, failure.location);
    if (failure?.retryAfterSeconds !== undefined) response.set('retry-after', `${failure.retryAfterSeconds}`);
    const status = statusOf[failure?.kind ?? 'internal'];
    const title =
      failure instanceof PageError ? failure.title : (TITLES[failure?.kind ?? 'internal'] ?? 'Something went wrong');
    const text = failure?.message ?? 'This service failed to answer, and has written down why. Try again in a moment.';
    const { signedIn } = request;
    if (signedIn === undefined || failure instanceof PageError) {
      const page = messagePage(this.env, title, text, failure instanceof PageError ? failure : undefined);
      return sendPage(response, page, status);
    }
    const framed =
      status === 404 ? new NothingHere() : new FramedPage(() => ({ title, body: notice(text, 'wait') }), status);
    sendPage(response, renderFramed(this.env, request, response, signedIn, framed), status);
  }
}
