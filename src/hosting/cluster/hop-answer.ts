import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import type { Dispatcher } from 'undici';
import { HostAwayError } from '../hosting.errors.js';
import { dataPrefix, END_FRAME, failureFrame, headFrame } from './hop-frames.js';
import type { PlacedHandler } from './placed-handler.js';
import { toWire } from './wired-failure.js';

/**
 * Takes the answer of a program here to the process that asked, piece by piece as it comes: what that process does not
 * read is not taken from the program either, and when it leaves, the program hears so.
 */
export class HopAnswer implements PlacedHandler {
  private controller: Dispatcher.DispatchController | null = null;
  private isOver = false;

  constructor(private readonly response: ServerResponse) {
    response.on('drain', () => this.controller?.resume());
    response.on('error', () => this.leave());
    response.on('close', () => this.leave());
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller;
    if (this.isOver) controller.abort(left());
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController | null,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    if (status < 200 || this.isOver) return;
    this.begin();
    this.response.write(headFrame({ status, headers }));
  }

  onResponseData(controller: Dispatcher.DispatchController | null, chunk: Buffer): void {
    if (this.isOver || chunk.length === 0) return;
    this.response.write(dataPrefix(chunk.length));
    if (!this.response.write(chunk)) controller?.pause();
  }

  onResponseEnd(): void {
    this.end(END_FRAME);
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    this.fail(error);
  }

  fail(error: Error): void {
    if (!this.isOver) this.begin();
    this.end(failureFrame(toWire(error)));
  }

  unreached(): void {
    this.fail(new Error('nothing was dialled'));
  }

  /** This process stops: an event stream that stayed open ends there, as it may at any time. */
  stop(): void {
    const { controller } = this;
    if (this.response.headersSent) this.end(END_FRAME);
    else this.fail(new HostAwayError('The process that runs this program restarts: open the stream again.', 1));
    controller?.abort(left());
  }

  private begin(): void {
    if (this.response.headersSent) return;
    this.response.writeHead(200, { 'content-type': 'application/octet-stream' });
    // A short answer comes in one go, and leaves in one.
    this.response.cork();
    process.nextTick(() => this.response.uncork());
  }

  private end(frame: Buffer): void {
    if (this.isOver) return;
    this.isOver = true;
    this.response.end(frame);
  }

  private leave(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.controller?.abort(left());
  }
}

function left(): Error {
  return new Error('whoever asked has left');
}
