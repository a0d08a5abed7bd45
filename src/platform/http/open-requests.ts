import type { IncomingMessage, ServerResponse } from 'node:http';
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

  /** @param response null for a WebSocket handshake: open until its socket closes */
  add(request: IncomingMessage, response: ServerResponse | null, right: Right): void {
    const { socket } = request;
    const isCall = response !== null && request.method !== 'GET';
    const target = response ?? socket;
    if (target.destroyed) return;
    this.open.set(request, { right, isCall, hasFailed: false, end: () => void target.destroy() });
    target.once('close', () => this.open.delete(request));
  }

  /** The open request; undefined for one that nothing holds open, or that has ended. */
  of(request: IncomingMessage): OpenRequest<Right> | undefined {
    return this.open.get(request);
  }

  /** {@link OpenRequest.check}, for as long as the request is open. */
  checkWhileOpen(request: IncomingMessage, check: () => unknown, tool?: OpenRequest['tool']): void {
    const open = this.open.get(request);
    if (open) Object.assign(open, { check, tool });
  }

  /** All of them, in the order of their admission. */
  [Symbol.iterator](): Iterator<OpenRequest<Right>> {
    return this.open.values();
  }
}
