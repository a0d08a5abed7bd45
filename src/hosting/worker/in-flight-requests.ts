import { growingLru } from '../../platform/limits/growing-lru.js';
import type { Dispatcher } from 'undici';
import { ENDED_MAX, INVOCATION_HEADER } from '../hosting.types.js';
import { passingTo } from '../hosting.js';

/** Time before a process exit in which a response might have been cut off by it, since the response closes first. */
const BROKEN_MS = 2_000;

const BROKEN_MAX = 100;

export class InFlight {
  private readonly open = new Map<string, number>();
  private readonly ended = growingLru<true>(ENDED_MAX);
  private broken: { id: string; at: number }[] = [];

  get onlyInFlight(): string | null {
    return this.open.size === 1 ? [...this.open.keys()][0] : null;
  }

  /** Invocation whose response was cut off just before the exit; null for none or several. */
  get onlyLost(): string | null {
    const since = performance.now() - BROKEN_MS;
    const lost = new Set([...this.open.keys(), ...this.broken.filter(({ at }) => at >= since).map(({ id }) => id)]);
    return lost.size === 1 ? [...lost][0] : null;
  }

  /** Returns false for an id without a request, which the code made up. */
  isKnown(id: string): boolean {
    return this.open.has(id) || this.ended.has(id);
  }

  begin(id: string): void {
    this.open.set(id, (this.open.get(id) ?? 0) + 1);
  }

  break(id: string): void {
    this.broken = [...this.broken.slice(1 - BROKEN_MAX), { id, at: performance.now() }];
  }

  finish(id: string): void {
    const remaining = (this.open.get(id) ?? 1) - 1;
    if (remaining > 0) return void this.open.set(id, remaining);
    this.open.delete(id);
    this.ended.set(id, true);
  }

  watch(dispatcher: Dispatcher): Dispatcher {
    return dispatcher.compose((dispatch) => (options, handler) => {
      const id = invocationIn(options.headers);
      if (id === null) return dispatch(options, handler);
      this.begin(id);
      let isOver = false;
      const finish = () => {
        if (!isOver) this.finish(id);
        isOver = true;
      };
      return dispatch(options, {
        ...passingTo(handler),
        onResponseEnd: (controller, trailers) => {
          finish();
          handler.onResponseEnd?.(controller, trailers);
        },
        onResponseError: (controller, error) => {
          if (!isOver) this.break(id);
          finish();
          handler.onResponseError?.(controller, error);
        },
      });
    });
  }
}

function invocationIn(headers: Dispatcher.DispatchOptions['headers']): string | null {
  if (!headers || Array.isArray(headers) || Symbol.iterator in headers) return null;
  const value = (headers as Record<string, unknown>)[INVOCATION_HEADER];
  return typeof value === 'string' ? value : null;
}
