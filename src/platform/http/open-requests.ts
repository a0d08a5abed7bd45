import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';
import { Injectable } from '@nestjs/common';
import type { DomainError } from '../errors/domain-error.js';

/** A call, a stream or a tunnel that was admitted and has not ended. */
export interface OpenRequest<Right = unknown> {
  /** The parameters of its admission, for the service that checks it again. */
  right: Right;
  /** True for a call, which may have had effects: its response gets some seconds more. */
  isCall: boolean;
  /** True if its last check has failed. */
  hasFailed: boolean;
  /** Repeats the checks of its handler. Throws or rejects with a DomainError when one fails. */
  check?: () => unknown;
  /** The name of the tool, where it calls one and does nothing else. */
  tool?: () => string | undefined;
  /** Closes it as if its client had disconnected, unless its handler has set another function. `error`: of the failed check. */
  end: (error?: DomainError) => void;
}

/** The admitted requests of this process that are still open. `OpenRights` repeats their checks. */
@Injectable()
export class OpenRequests<Right = unknown> {
  private readonly open = new Map<IncomingMessage, OpenRequest<Right>>();

  /** Holds it until {@link remove}. @param response null for a WebSocket handshake */
  add(request: IncomingMessage, response: ServerResponse | null, right: Right): void {
    const isCall = response !== null && request.method !== 'GET';
    this.open.set(request, { right, isCall, hasFailed: false, end: () => void (response ?? request.socket).destroy() });
  }

  /** To be called when it has ended, which can be before its response is closed. */
  remove(request: IncomingMessage): void {
    this.open.delete(request);
  }

  /** Calls {@link remove} when the response or the socket of the request closes. */
  removeOnClose(request: IncomingMessage, closing: Writable): void {
    if (!this.open.has(request)) return;
    if (closing.destroyed) this.open.delete(request);
    else closing.once('close', () => this.open.delete(request));
  }

  /** The open request; undefined for one that nothing holds open, or that has ended. */
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

  /** All of them, in the order of their admission. */
  [Symbol.iterator](): Iterator<OpenRequest<Right>> {
    return this.open.values();
  }
}
