import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';
import { Injectable } from '@nestjs/common';
import type { DomainError } from '../errors/domain-error.js';
import { CallList } from '../limits/call-list.js';

export interface OpenRequest<Right = unknown> {
  /** Admission of the request, which a service checks again. */
  right: Right;
  /** True for a call, which might have had effects, so that its response gets some seconds more. */
  isCall: boolean;
  hasFailed: boolean;
  /** Repeats the checks of its handler. Throws or rejects with a DomainError when one fails. */
  check?: () => unknown;
  /** Returns the called tool; undefined for other requests. */
  tool?: () => string | undefined;
  /**
   * Closes the request as if its client had disconnected, unless the handler has set another function. `error` is that
   * of the failed check.
   */
  end: (error?: DomainError) => void;
}

const TRACKED = Symbol('open request');

/** A request that can carry its own entry: a Map by requests would keep finished ones reachable, see {@link CallList}. */
type TrackedRequest<Right> = IncomingMessage & { [TRACKED]?: { open: OpenRequest<Right>; leave: () => void } };

/** `OpenRights` repeats the checks of these requests. */
@Injectable()
export class OpenRequests<Right = unknown> {
  private readonly open = new CallList<OpenRequest<Right>>();

  /** @param response null for a WebSocket handshake */
  add(request: TrackedRequest<Right>, response: ServerResponse | null, right: Right): void {
    const isCall = response !== null && request.method !== 'GET';
    const open = { right, isCall, hasFailed: false, end: () => void (response ?? request.socket).destroy() };
    request[TRACKED] = { open, leave: this.open.add(open) };
  }

  /** Removes a request. Call this when the request has finished, which can be before its response is closed. */
  remove(request: TrackedRequest<Right>): void {
    request[TRACKED]?.leave();
    request[TRACKED] = undefined;
  }

  removeOnClose(request: TrackedRequest<Right>, closing: Writable): void {
    if (!request[TRACKED]) return;
    if (closing.destroyed) this.remove(request);
    else closing.once('close', () => this.remove(request));
  }

  /** Returns the open request; undefined for one that is not tracked, or has finished. */
  find(request: TrackedRequest<Right>): OpenRequest<Right> | undefined {
    return request[TRACKED]?.open;
  }

  checkWhileOpen(request: TrackedRequest<Right>, check: () => unknown, tool?: OpenRequest['tool']): void {
    const open = this.find(request);
    if (open) Object.assign(open, { check, tool });
  }

  endBy(request: TrackedRequest<Right>, end: () => void, tool?: OpenRequest['tool']): void {
    const open = this.find(request);
    if (open) Object.assign(open, { end, tool });
  }

  /** The open requests, in no particular order. */
  list(): OpenRequest<Right>[] {
    return this.open.filter(() => true);
  }
}
