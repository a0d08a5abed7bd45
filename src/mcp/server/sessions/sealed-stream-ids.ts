import { randomBytes } from 'node:crypto';
import type { Env } from '../../../config/env.js';
import { Vault, VaultError } from '../../../platform/vault/vault.js';

export interface StreamRef {
  name: string;
  /** Address of the process; null when it has none. */
  url: string | null;
}

export class SealedStreamIds {
  private readonly processId = randomBytes(9).toString('base64url');

  constructor(
    private readonly vault: Vault,
    private readonly env: Pick<Env, 'internalUrl'>,
  ) {}

  /** @returns the name of the stream, in this process */
  create(): string {
    return `${this.processId}.${randomBytes(18).toString('base64url')}`;
  }

  isOwn({ name }: StreamRef): boolean {
    return name.startsWith(`${this.processId}.`);
  }

  seal(name: string, caller: string): string {
    return this.vault.seal(JSON.stringify([name, this.env.internalUrl]), ownerOf(caller));
  }

  /** Returns the inverse of {@link seal}; null for ids that were not sealed for this caller. */
  open(sealed: string, caller: string): StreamRef | null {
    try {
      const [name, url] = JSON.parse(this.vault.open(sealed, ownerOf(caller))) as [string, string | null];
      return { name, url };
    } catch (error) {
      if (error instanceof VaultError) return null;
      throw error;
    }
  }
}

function ownerOf(caller: string): string {
  return `stream of ${caller}`;
}
