import type { ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';

/** A grant, with the terms that it had when something was opened by it. */
export interface HoldingGrant {
  id: string;
  level: string;
  terms: string;
}

/** True for the grant of somebody who may call a thing, and not manage it. */
export function isGuest(grant: HoldingGrant | undefined): boolean {
  return grant?.level === 'call';
}

/**
 * Streams and tunnels that are open in this process, by the key and the grant that opened them: they end with either. Running
 * calls are answered, unless they are cut.
 */
@Injectable()
export class HeldByKeys {
  private readonly byKey = new Map<string, Set<() => void>>();
  private readonly byGrant = new Map<string, Set<() => void>>();
  /** Responses of running calls, by the ids of their keys and grants. */
  private readonly calls = new Map<string, Set<ServerResponse>>();

  /** Keys that hold something open. */
  get keyIds(): string[] {
    return [...this.byKey.keys()];
  }

  /** Grants that hold something open. */
  get grants(): Pick<HoldingGrant, 'id' | 'terms'>[] {
    return [...this.byGrant.keys()].map((name) => {
      const [id = '', terms = ''] = name.split(' ');
      return { id, terms };
    });
  }

  /**
   * @param end called when the key was revoked or has expired, or the grant was withdrawn or changed
   * @param grant absent for what is the caller's own, or public
   * @returns function to call when the thing has ended
   */
  add(keyId: string, end: () => void, grant?: HoldingGrant): () => void {
    const forgetKey = enter(this.byKey, keyId, end);
    const forgetGrant = grant && enter(this.byGrant, nameOf(grant), end);
    return () => {
      forgetKey();
      forgetGrant?.();
    };
  }

  /**
   * @param ids of the key and the grant that the call runs with
   * @returns function to call when the call has ended
   */
  addCall(response: ServerResponse, ids: readonly (string | undefined)[]): () => void {
    const forgets = ids.map((id) => id !== undefined && enter(this.calls, id, response));
    return () => {
      for (const forget of forgets) if (forget) forget();
    };
  }

  /** Cuts the calls of a key or a grant, by its id, as if their clients had left. */
  cut(id: string): void {
    for (const response of [...(this.calls.get(id) ?? [])]) response.destroy();
  }

  /** Ends everything that a key holds. */
  end(keyId: string): void {
    endAll(this.byKey, keyId);
  }

  /** Ends everything that a grant of these terms holds. */
  endGrant(grant: Pick<HoldingGrant, 'id' | 'terms'>): void {
    endAll(this.byGrant, nameOf(grant));
  }
}

function nameOf({ id, terms }: Pick<HoldingGrant, 'id' | 'terms'>): string {
  return `${id} ${terms}`;
}

function enter<T>(holders: Map<string, Set<T>>, name: string, thing: T): () => void {
  const things = holders.get(name) ?? new Set();
  holders.set(name, things.add(thing));
  return () => {
    if (things.delete(thing) && things.size === 0) holders.delete(name);
  };
}

function endAll(holders: Map<string, Set<() => void>>, name: string): void {
  for (const end of [...(holders.get(name) ?? [])]) end();
}
