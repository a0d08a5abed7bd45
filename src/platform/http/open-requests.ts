import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';
import { Injectable } from '@nestjs/common';
import type { DomainError } from '../errors/domain-error.js';

/** An admitted call, stream or tunnel that has not finished. */
export interface OpenRequest<Right = unknown> {
  /** The parameters of its admission, for the service that checks it again. */
  right: Right;
  /** True for a call, which might have had effects: its response gets some seconds more. */
  isCall: boolean;
  /** True if its last check has failed. */
  hasFailed: boolean;
  /** Repeats the checks of its handler. Throws or rejects with a DomainError when one fails. */
  check?: () => unknown;
  /** The name of the tool, if the request only calls it. */
  tool?: () => string | undefined;
  /**
   * Closes it as if its client had disconnected, unless its handler has set another function. `error` is that of the
   * failed check.
   */
  end: (error?: DomainError) => void;
}

/** The admitted requests of this process that are still open. `OpenRights` repeats their checks. */
@Injectable()
export class OpenRequests<Right = unknown> {
  private readonly open = new Map<IncomingMessage, OpenRequest<Right>>();

  /** Tracks a request until {@link remove}. @param response null for a WebSocket handshake */
  add(request: IncomingMessage, response: ServerResponse | null, right: Right): void {
    const isCall = response !== null && request.method !== 'GET';
    this.open.set(request, { right, isCall, hasFailed: false, end: () => void (response ?? request.socket).destroy() });
  }

  /** Call it when the request has finished, which can be before its response is closed. */
  remove(request: IncomingMessage): void {
    this.open.delete(request);
  }

  /** Calls {@link remove} when the response or the socket of the request closes. */
  removeOnClose(request: IncomingMessage, closing: Writable): void {
    if (!this.open.has(request)) return;
    if (closing.destroyed) this.open.delete(request);
    else closing.once('close', () => this.open.delete(request));
  }

  /** The open request; undefined for one that is not tracked, or has finished. */
  find(request: IncomingMessage): OpenRequest<Right> | undefined {
    return this.open.get(request);
  }

  /** Sets {@link OpenRequest.check} and {@link OpenRequest.tool} of a request, while it is open. */
  checkWhileOpen(request: IncomingMessage, check: () => unknown, tool?: OpenRequest['tool']): void {
    const open = this.open.get(request);
    if (open) Object.assign(open, { check, tool });
  }

  /** Sets {@link OpenRequest.end} and {@link OpenRequest.tool} of a request, while it is open. */
  endBy(request: IncomingMessage, end: () => void, tool?: OpenRequest['tool']): void {
    const open = this.open.get(request);
    if (open) Object.assign(open, { end, tool });
  }

  /** All requests, in the order of their admission. */
  [Symbol.iterator](): Iterator<OpenRequest<Right>> {
    return this.open.values();
  }
}
