import type { ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import { CallList } from '../limits/call-list.js';

export interface HoldingGrant {
  /** Null for access by membership. */
  id: string | null;
  level: string;
}

/** Returns true for a grant with level `call`, which does not include `manage`. */
export function isGuest(grant: HoldingGrant | undefined): boolean {
  return grant?.level === 'call';
}

/**
 * The open streams, tunnels and sessions of this process, by the key that opened them. They close when the key is revoked. Running
 * calls close with the next check of their rights (`OpenRights`), unless they are canceled immediately.
 */
@Injectable()
export class RevocationRegistry {
  private readonly byKey = new Map<string, Set<() => void>>();
  /** Running calls, with the ids of their key and grant. */
  private readonly calls = new CallList<{ response: ServerResponse; ids: readonly (string | null | undefined)[] }>();

  /** Keys that hold anything open. */
  get keyIds(): string[] {
    return [...this.byKey.keys()];
  }

  /**
   * @param end called when the key was revoked or has expired
   * @returns function to call when it has closed
   */
  add(keyId: string, end: () => void): () => void {
    const ends = this.byKey.get(keyId) ?? new Set();
    this.byKey.set(keyId, ends.add(end));
    return () => {
      if (ends.delete(end) && ends.size === 0) this.byKey.delete(keyId);
    };
  }

  /**
   * @param ids of the key and the grant that the call runs with
   * @returns function to call when the call has finished
   */
  addCall(response: ServerResponse, ids: readonly (string | null | undefined)[]): () => void {
    return this.calls.add({ response, ids });
  }

  /** Aborts the calls of a key or a grant, by its id, as if their clients had disconnected. */
  cutCalls(id: string): void {
    for (const { response } of this.calls.filter(({ ids }) => ids.includes(id))) response.destroy();
  }

  /** Closes everything that a key holds open. */
  closeAllOf(keyId: string): void {
    for (const end of [...(this.byKey.get(keyId) ?? [])]) end();
  }
}
