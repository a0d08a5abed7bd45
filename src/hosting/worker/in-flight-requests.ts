import type { Dispatcher } from 'undici';
import { INVOCATION_HEADER } from '../hosting.types.js';

/** Invocations of one program that are remembered after their end: lines of an event come late. */
const ENDED_MAX = 10_000;

/** How long before the end of a process an answer may have broken because of it: whoever ends a loop ends the answer first. */
const BROKEN_MS = 2_000;

/** Broken answers that are remembered so long. */
const BROKEN_MAX = 100;

/** The invocations a program works on, and those it has answered of late. */
export class InFlight {
  private readonly open = new Map<string, number>();
  private readonly ended = new Set<string>();
  private broken: { id: string; at: number }[] = [];

  /** The one invocation that is being answered; null for none or several. */
  get only(): string | null {
    return this.open.size === 1 ? [...this.open.keys()][0] : null;
  }

  /** The one that was being answered when the process went: its answer broke a moment ago. Null for none or several. */
  get onlyLost(): string | null {
    const since = performance.now() - BROKEN_MS;
    const lost = new Set([...this.open.keys(), ...this.broken.filter(({ at }) => at >= since).map(({ id }) => id)]);
    return lost.size === 1 ? [...lost][0] : null;
  }

  /** False for an id no request to this program had: the code made it up. */
  knows(id: string): boolean {
    return this.open.has(id) || this.ended.has(id);
  }

  begin(id: string): void {
    this.open.set(id, (this.open.get(id) ?? 0) + 1);
  }

  /** An answer broke. */
  break(id: string): void {
    this.broken = [...this.broken.slice(1 - BROKEN_MAX), { id, at: performance.now() }];
  }

  end(id: string): void {
    const others = (this.open.get(id) ?? 1) - 1;
    if (others > 0) return void this.open.set(id, others);
    this.open.delete(id);
    this.ended.add(id);
    if (this.ended.size > ENDED_MAX) {
      const [oldest] = this.ended;
      this.ended.delete(oldest);
    }
  }

  /** The same dispatcher, watched. */
  watch(dispatcher: Dispatcher): Dispatcher {
    return dispatcher.compose((dispatch) => (options, handler) => {
      const id = invocationIn(options.headers);
      if (id === null) return dispatch(options, handler);
      this.begin(id);
      let isOver = false;
      const over = () => {
        if (!isOver) this.end(id);
        isOver = true;
      };
      return dispatch(
        options,
        watched(handler, over, () => !isOver && this.break(id)),
      );
    });
  }
}

function watched(
  handler: Dispatcher.DispatchHandler,
  over: () => void,
  broken: () => void,
): Dispatcher.DispatchHandler {
  return {
    onRequestStart: (controller, context: unknown) => handler.onRequestStart?.(controller, context),
    onRequestUpgrade: (controller, status, headers, socket) => {
      socket.once('close', over);
      handler.onRequestUpgrade?.(controller, status, headers, socket);
    },
    onResponseStart: (controller, status, headers, message) =>
      handler.onResponseStart?.(controller, status, headers, message),
    onResponseData: (controller, chunk) => handler.onResponseData?.(controller, chunk),
    onResponseEnd: (controller, trailers) => {
      over();
      handler.onResponseEnd?.(controller, trailers);
    },
    onResponseError: (controller, error) => {
      broken();
      over();
      handler.onResponseError?.(controller, error);
    },
  };
}

function invocationIn(headers: Dispatcher.DispatchOptions['headers']): string | null {
  if (!headers || Array.isArray(headers) || Symbol.iterator in headers) return null;
  const value = (headers as Record<string, unknown>)[INVOCATION_HEADER];
  return typeof value === 'string' ? value : null;
}
