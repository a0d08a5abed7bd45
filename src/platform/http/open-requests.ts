import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';
import { Injectable } from '@nestjs/common';

/** A call, a stream or a tunnel that was admitted and has not ended. */
export interface OpenRequest<Right = unknown> {
  /** What was asked when it was admitted. */
  right: Right;
  /** True for a call, which may have had effects: it gets some seconds more to be answered. */
  isCall: boolean;
  /** True if its last check has failed. */
  hasFailed: boolean;
  /** Asks what its handler asked beside its admission. Throws or rejects with a DomainError when that holds no longer. */
  check?: () => unknown;
  /** The name of the tool, where it calls one and does nothing else. */
  tool?: () => string | undefined;
  /** Ends it: as if its client had left, unless its handler ends it in another way. */
  end: () => void;
}

/** The admitted requests that are at work in this process. Who admitted them checks them again and again. */
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
  of(request: IncomingMessage): OpenRequest<Right> | undefined {
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
