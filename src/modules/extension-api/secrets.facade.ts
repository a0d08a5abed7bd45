import { Injectable } from '@nestjs/common';
import { Vault } from '../../platform/vault/vault.js';

/**
 * Encrypts values that a module stores, with the keys of the service.
 *
 * @stability preview
 * @example // Stores a token of a user, and reads it again. export class TokensService {
 *   constructor(private readonly secrets: Secrets) {}
 *
 *   seal(rowId: string, token: string): string {
 *     return this.secrets.seal('billing', token, rowId);
 *   }
 *
 *   open(rowId: string, sealed: string): string {
 *     return this.secrets.open('billing', sealed, rowId);
 *   } }
 */
export abstract class Secrets {
  /**
   * Returns an encrypted value. It opens only for the same module and owner, and while `ENCRYPTION_KEYS` has the key
   * that sealed it: key rotation does not seal values of modules again.
   *
   * @param module the name of the module
   * @param owner what the value belongs to, such as the id of its row
   */
  abstract seal(module: string, plaintext: string, owner: string): string;

  /** Returns the value of {@link seal}. @throws VaultError for another module or owner, a changed value or a missing key */
  abstract open(module: string, sealed: string, owner: string): string;
}

/** Encrypts values of modules. No owner of a value of the core begins with `module `. */
@Injectable()
export class VaultSecrets implements Secrets {
  constructor(private readonly vault: Vault) {}

  seal(module: string, plaintext: string, owner: string): string {
    return this.vault.seal(plaintext, `module ${module} ${owner}`);
  }

  open(module: string, sealed: string, owner: string): string {
    return this.vault.open(sealed, `module ${module} ${owner}`);
  }
}
