import type { IncomingMessage, ServerResponse } from 'node:http';
import { Controller, HttpCode, Param, Post, Req, Res, type BeforeApplicationShutdown } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import { RouteNotFoundError } from '../../platform/errors/http-errors.js';
import { INTERNAL_HEADER, InternalSignatures } from '../../platform/internal-http/internal-signatures.js';
import { Public } from '../../platform/http/public.decorator.js';
import { HopAnswer } from './hop-answer.js';
import { bodyOf, readHead } from './hop-body.js';
import type { HopHead } from './hop-frames.js';
import { HostingRouter } from './hosting-router.js';

/** Requests to programs here, from other processes. Whoever does not hold the secret finds nothing here. */
@Controller('internal/hosting/:host')
@ApiExcludeController()
export class InternalHostingController implements BeforeApplicationShutdown {
  /** Answers that end only when somebody leaves. */
  private readonly streams = new Set<HopAnswer>();

  constructor(
    private readonly hosting: HostingRouter,
    private readonly signatures: InternalSignatures,
  ) {}

  /** One request. @throws RouteNotFoundError for anybody else, before a byte of the body is looked at */
  @Post()
  @HttpCode(200)
  @Public()
  async serve(
    @Param('host') host: string,
    @Req() request: IncomingMessage,
    @Res() response: ServerResponse,
  ): Promise<void> {
    const path = request.url ?? '';
    const isSigned = this.signatures.verify(path, request.headers[INTERNAL_HEADER]);
    if (!isSigned) throw new RouteNotFoundError('POST', path);
    const text = await readHead(request);
    if (!isSigned(text)) throw new RouteNotFoundError('POST', path);
    const { ref, request: head, body } = JSON.parse(text) as HopHead;
    const answer = new HopAnswer(response);
    if (head.isStream) {
      this.streams.add(answer);
      response.once('close', () => this.streams.delete(answer));
    }
    if (!body) request.resume();
    this.hosting.receive(host, ref, body ? { ...head, body: bodyOf(request, body.sha256) } : head, answer);
  }

  beforeApplicationShutdown(): void {
    for (const answer of this.streams) answer.stop();
  }
}
