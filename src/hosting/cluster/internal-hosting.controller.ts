import type { IncomingMessage, ServerResponse } from 'node:http';
import { Controller, HttpCode, Param, Post, Req, Res, type BeforeApplicationShutdown } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import { InternalServer } from '../../platform/internal-http/internal-server.js';
import { Public } from '../../platform/http/public.decorator.js';
import type { HostRequestHead } from './host-client.js';
import { HostResponse } from './host-response.js';
import { HostingRouter } from './hosting-router.js';

/** Requests of other processes to programs of this one. */
@Controller('internal/hosting/:host/:epoch')
@ApiExcludeController()
export class InternalHostingController implements BeforeApplicationShutdown {
  /** Event streams, which have no end of their own. */
  private readonly streams = new Set<HostResponse>();

  constructor(
    private readonly hosting: HostingRouter,
    private readonly internal: InternalServer,
  ) {}

  /** Runs one request. @throws RouteNotFoundError for a request that no process of this service signed */
  @Post()
  @HttpCode(200)
  @Public()
  async serve(
    @Param('host') host: string,
    @Param('epoch') epoch: string,
    @Req() request: IncomingMessage,
    @Res() response: ServerResponse,
  ): Promise<void> {
    const { head, body } = await this.internal.accept<HostRequestHead>(request);
    const answer = new HostResponse(response);
    if (head.request.isStream) {
      this.streams.add(answer);
      response.once('close', () => this.streams.delete(answer));
    }
    const hosted = body ? { ...head.request, body } : head.request;
    this.hosting.receive({ id: host, epoch }, head.ref, hosted, answer);
  }

  beforeApplicationShutdown(): void {
    for (const answer of this.streams) answer.stop();
  }
}
