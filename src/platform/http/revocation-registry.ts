import type { ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';

export interface HoldingGrant {
  /** Null for access by membership. */
  id: string | null;
  level: string;
}

/** True for a grant with level `call`, which does not include `manage`. */
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
  /** Responses of running calls, by the ids of their keys and grants. */
  private readonly calls = new Map<string, Set<ServerResponse>>();

  /** Keys that hold anything open. */
  get keyIds(): string[] {
    return [...this.byKey.keys()];
  }

  /**
   * @param end called when the key was revoked or has expired
   * @returns function to call when it has closed
   */
  add(keyId: string, end: () => void): () => void {
    return addTo(this.byKey, keyId, end);
  }

  /**
   * @param ids of the key and the grant that the call runs with
   * @returns function to call when the call has finished
   */
  addCall(response: ServerResponse, ids: readonly (string | null | undefined)[]): () => void {
    const forgets = ids.map((id) => id != null && addTo(this.calls, id, response));
    return () => {
      for (const forget of forgets) if (forget) forget();
    };
  }

  /** Aborts the calls of a key or a grant, by its id, as if their clients had disconnected. */
  cutCalls(id: string): void {
    for (const response of [...(this.calls.get(id) ?? [])]) response.destroy();
  }

  /** Closes everything that a key holds open. */
  closeAllOf(keyId: string): void {
    for (const end of [...(this.byKey.get(keyId) ?? [])]) end();
  }
}

function addTo<T>(holders: Map<string, Set<T>>, name: string, entry: T): () => void {
  const entries = holders.get(name) ?? new Set();
  holders.set(name, entries.add(entry));
  return () => {
    if (entries.delete(entry) && entries.size === 0) holders.delete(name);
  };
}
