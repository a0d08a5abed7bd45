import { Catch, Logger, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { Request, Response } from 'express';
import { DomainError, statusOf } from '../errors/domain-error.js';
import { domainErrorOf } from '../errors/error-body.js';
import { logFailure } from '../errors/error.filter.js';
import { messagePage, PageError } from './page.js';

/** Errors of routes that people open in a browser: a page instead of JSON. */
@Catch()
export class PageFilter implements ExceptionFilter {
  private readonly logger = new Logger('http');

  catch(thrown: unknown, host: ArgumentsHost): void {
    const request = host.switchToHttp().getRequest<Request>();
    const response = host.switchToHttp().getResponse<Response>();
    const error = thrown instanceof DomainError ? thrown : (domainErrorOf(thrown) ?? thrown);
    logFailure(this.logger, error, request);
    const known = error instanceof DomainError ? error : null;
    const { html, headers } = messagePage(
      known instanceof PageError ? known.title : 'Something went wrong',
      known?.message ?? 'Slipway failed to answer, and has written down why. Try again in a moment.',
    );
    response
      .status(statusOf[known?.kind ?? 'internal'])
      .set(headers)
      .send(html);
  }
}
