import type { IncomingMessage, ServerResponse, IncomingHttpHeaders } from 'node:http';
import { Param, Req, Res, type BeforeApplicationShutdown } from '@nestjs/common';
import { InternalServer, InternalAnswer } from '../../platform/internal-http/internal-server.js';
import { InternalController, InternalRoute } from '../../platform/internal-http/internal-route.js';
import type { HostRequestHead } from './host-client.js';
import { HostingRouter } from './hosting-router.js';
import type { Dispatcher } from 'undici';
import { Serializable } from '../../platform/internal-http/error-codec.js';
import { HostAwayError, HostedFailure } from '../hosting.errors.js';
import type { AttemptHandler } from './retrying-dispatch.js';

/** The response of a program was cut off. `code` is the one of undici or of the socket. */
@Serializable('code')
export class BrokenResponseError extends Error {
  constructor(
    message: string,
    readonly code: string | undefined,
  ) {
    super(message);
  }
}

/**
 * Streams the response of a local program to the process that sent the request. While that process does not read, the
 * program's response is paused; when it disconnects, the program's request is aborted.
 */
class HostResponse implements AttemptHandler {
  private controller: Dispatcher.DispatchController | null = null;
  private isLeft = false;
  private readonly answer: InternalAnswer;

  constructor(response: ServerResponse) {
    this.answer = new InternalAnswer(response, () => {
      this.isLeft = true;
      this.controller?.abort(callerLeft());
    });
    response.on('drain', () => this.controller?.resume());
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    if (this.isLeft) controller.abort(callerLeft());
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController | null,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    if (status >= 200) this.answer.head({ status, headers });
  }

  onResponseData(controller: Dispatcher.DispatchController | null, chunk: Buffer): void {
    if (!this.answer.data(chunk)) controller?.pause();
  }

  onResponseEnd(): void {
    this.answer.complete();
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    const { message, code } = error as NodeJS.ErrnoException;
    this.answer.fail(error instanceof HostedFailure ? error : new BrokenResponseError(message, code));
  }

  /** Closes an event stream because this process stops; a stream that was not open yet fails with HostAwayError. */
  stop(): void {
    if (this.answer.isBegun) this.answer.complete();
    else
      this.onResponseError(
        null,
        new HostAwayError('The process that runs this program restarts: open the stream again.', 1),
      );
    this.controller?.abort(callerLeft());
  }
}

@InternalController('internal/hosting/:host/:epoch')
export class InternalHostingController implements BeforeApplicationShutdown {
  /** Open event streams, which do not close by themselves. */
  private readonly streams = new Set<HostResponse>();

  constructor(
    private readonly hostingRouter: HostingRouter,
    private readonly internalServer: InternalServer,
  ) {}

  /** Runs one request. @throws NotFoundError for a request that no process of this service signed */
  @InternalRoute()
  async serve(
    @Param('host') host: string,
    @Param('epoch') epoch: string,
    @Req() request: IncomingMessage,
    @Res() response: ServerResponse,
  ): Promise<void> {
    const { head, body } = await this.internalServer.accept<HostRequestHead>(request);
    const answer = new HostResponse(response);
    if (head.request.isStream) {
      this.streams.add(answer);
      response.once('close', () => this.streams.delete(answer));
    }
    const hosted = body ? { ...head.request, body } : head.request;
    this.hostingRouter.receive({ id: host, epoch }, head.ref, hosted, answer);
  }

  beforeApplicationShutdown(): void {
    for (const answer of this.streams) answer.stop();
  }
}

function callerLeft(): Error {
  return new Error('the process that sent the request has left');
}
