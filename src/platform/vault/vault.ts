import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { EncryptionKey } from '../../config/env.js';

const ALGORITHM = 'aes-256-gcm';
/** 96 bits, the length GCM is specified for (NIST SP 800-38D). */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** A sealed value cannot be opened: its key is unknown, it was changed, or it belongs to another row. */
export class VaultError extends Error {}

/**
 * Seals secrets at rest: AES-256-GCM under a data key made for each value, which is itself sealed under one of the
 * operator's keys. The key's id stands with the value, so keys can be added and retired one after another.
 */
export class Vault {
  private readonly keys: Map<string, Buffer>;
  private readonly writer: EncryptionKey;

  /** @param keys at least one; the first one writes, all of them read. */
  constructor(keys: readonly EncryptionKey[]) {
    const [writer] = keys;
    if (!writer) throw new VaultError('The vault needs at least one key.');
    this.writer = writer;
    this.keys = new Map(keys.map(({ id, secret }) => [id, secret]));
  }

  /**
   * @param owner what the value belongs to, e.g. the row's id; {@link open} needs the same words, so a sealed value
   * copied to another row does not open.
   * @returns `keyId.sealedDataKey.sealedValue`, both parts base64url
   */
  seal(plaintext: string, owner: string): string {
    const dataKey = randomBytes(32);
    const wrapped = encrypt(this.writer.secret, dataKey, this.writer.id);
    const value = encrypt(dataKey, Buffer.from(plaintext, 'utf8'), owner);
    return `${this.writer.id}.${wrapped.toString('base64url')}.${value.toString('base64url')}`;
  }

  /** @throws VaultError when the value cannot be opened; the message holds nothing of it. */
  open(sealed: string, owner: string): string {
    const [keyId = '', wrapped = '', value = ''] = sealed.split('.');
    const secret = this.keys.get(keyId);
    if (!secret) {
      throw new VaultError(`A stored secret was sealed with the key "${keyId}", which ENCRYPTION_KEYS does not hold.`);
    }
    try {
      const dataKey = decrypt(secret, Buffer.from(wrapped, 'base64url'), keyId);
      return decrypt(dataKey, Buffer.from(value, 'base64url'), owner).toString('utf8');
    } catch {
      throw new VaultError(
        `A stored secret does not open with the key "${keyId}": it was changed or the key is wrong.`,
      );
    }
  }
}

function encrypt(key: Buffer, plaintext: Buffer, associated: string): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(ALGORITHM, key, nonce).setAAD(Buffer.from(associated, 'utf8'));
  return Buffer.concat([nonce, cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
}

function decrypt(key: Buffer, sealed: Buffer, associated: string): Buffer {
  const decipher = createDecipheriv(ALGORITHM, key, sealed.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
    .setAAD(Buffer.from(associated, 'utf8'))
    .setAuthTag(sealed.subarray(-TAG_BYTES));
  return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
}
