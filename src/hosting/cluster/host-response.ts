import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import type { Dispatcher } from 'undici';
import { Serializable } from '../../platform/internal-http/error-codec.js';
import { InternalAnswer } from '../../platform/internal-http/internal-server.js';
import { HostAwayError, HostedFailure } from '../hosting.errors.js';
import type { AttemptHandler } from './retrying-dispatch.js';

/** The response of a program broke off. `code` is the one of undici or of the socket. */
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
 * program's response is paused; when it leaves, the program's request is aborted.
 */
export class HostResponse implements AttemptHandler {
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
    this.answer.end();
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    this.fail(error);
  }

  fail(error: Error): void {
    const { message, code } = error as NodeJS.ErrnoException;
    this.answer.fail(error instanceof HostedFailure ? error : new BrokenResponseError(message, code));
  }

  unreached(): void {
    this.fail(new Error('nothing was dialled'));
  }

  /** Ends an event stream because this process stops; a stream that was not open yet fails with HostAwayError. */
  stop(): void {
    if (this.answer.isBegun) this.answer.end();
    else this.fail(new HostAwayError('The process that runs this program restarts: open the stream again.', 1));
    this.controller?.abort(callerLeft());
  }
}

function callerLeft(): Error {
  return new Error('the process that sent the request has left');
}
