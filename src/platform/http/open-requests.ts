import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';
import { Injectable } from '@nestjs/common';
import type { DomainError } from '../errors/domain-error.js';

export interface OpenRequest<Right = unknown> {
  /** The service that checks the admission again reads it. */
  right: Right;
  /** A call might have had effects, so its response gets some seconds more. */
  isCall: boolean;
  hasFailed: boolean;
  /** Repeats the checks of its handler. Throws or rejects with a DomainError when one fails. */
  check?: () => unknown;
  /** Undefined if the request calls anything else. */
  tool?: () => string | undefined;
  /**
   * Closes the request as if its client had disconnected, unless the handler has set another function. `error` is that
   * of the failed check.
   */
  end: (error?: DomainError) => void;
}

/** `OpenRights` repeats the checks of these requests. */
@Injectable()
export class OpenRequests<Right = unknown> {
  private readonly open = new Map<IncomingMessage, OpenRequest<Right>>();

  /** @param response null for a WebSocket handshake */
  add(request: IncomingMessage, response: ServerResponse | null, right: Right): void {
    const isCall = response !== null && request.method !== 'GET';
    this.open.set(request, { right, isCall, hasFailed: false, end: () => void (response ?? request.socket).destroy() });
  }

  /** Call it when the request has finished, which can be before its response is closed. */
  remove(request: IncomingMessage): void {
    this.open.delete(request);
  }

  removeOnClose(request: IncomingMessage, closing: Writable): void {
    if (!this.open.has(request)) return;
    if (closing.destroyed) this.open.delete(request);
    else closing.once('close', () => this.open.delete(request));
  }

  /** Undefined for a request that is not tracked, or has finished. */
  find(request: IncomingMessage): OpenRequest<Right> | undefined {
    return this.open.get(request);
  }

  checkWhileOpen(request: IncomingMessage, check: () => unknown, tool?: OpenRequest['tool']): void {
    const open = this.open.get(request);
    if (open) Object.assign(open, { check, tool });
  }

  endBy(request: IncomingMessage, end: () => void, tool?: OpenRequest['tool']): void {
    const open = this.open.get(request);
    if (open) Object.assign(open, { end, tool });
  }

  /** Iterates in the order of admission. */
  [Symbol.iterator](): Iterator<OpenRequest<Right>> {
    return this.open.values();
  }
}
