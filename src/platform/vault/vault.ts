import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { loadEnv, StartError } from '../../config/env.js';
import { type EncryptionKey } from '../../config/setting.js';
import path from 'node:path';
import { makeFolder, createOnce, PASSABLE, readIfThere } from '../files/files.js';

const ALGORITHM = 'aes-256-gcm';
/** 96 bits, the length GCM is specified for (NIST SP 800-38D). */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** The key is unknown, the value was changed, or it belongs to another row. */
export class VaultError extends Error {}

/**
 * Seals secrets at rest: AES-256-GCM under a data key per value, which is itself sealed under one of the operator's
 * keys. The key's id is stored with the value, so keys can be added and retired one after another.
 */
export class Vault {
  private readonly keys: Map<string, Buffer>;
  private readonly writer: EncryptionKey;

  /** @param keys at least one; the first one seals, all of them open. */
  constructor(keys: readonly EncryptionKey[]) {
    const [writer] = keys;
    if (!writer) throw new VaultError('The vault needs at least one key.');
    this.writer = writer;
    this.keys = new Map(keys.map(({ id, secret }) => [id, secret]));
  }

  /**
   * @param owner what the value belongs to, e.g. the row's id; {@link open} needs the same string, so a sealed value
   * copied to another row does not open.
   * @returns `keyId.sealedDataKey.sealedValue`, both parts base64url
   */
  seal(plaintext: string, owner: string): string {
    const dataKey = randomBytes(32);
    const wrapped = encrypt(this.writer.secret, dataKey, this.writer.id);
    const value = encrypt(dataKey, Buffer.from(plaintext, 'utf8'), owner);
    return `${this.writer.id}.${wrapped.toString('base64url')}.${value.toString('base64url')}`;
  }

  /** The id of the key that seals. */
  get writerId(): string {
    return this.writer.id;
  }

  has(keyId: string): boolean {
    return this.keys.has(keyId);
  }

  /** Returns true if the key of a sealed value opens its data key, whatever its owner. */
  unwraps(sealed: string): boolean {
    const [keyId = '', wrapped = ''] = sealed.split('.');
    const secret = this.keys.get(keyId);
    if (!secret) return false;
    try {
      decrypt(secret, Buffer.from(wrapped, 'base64url'), keyId);
      return true;
    } catch {
      return false;
    }
  }

  /** Returns a keyed hash of a value, for an exact search: equal values have equal hashes until the first key changes. */
  hash(plaintext: string): string {
    return hashUnder(this.writer, plaintext);
  }

  /** Returns the hashes of a value under all keys, to find those of earlier first keys as well. */
  hashes(plaintext: string): string[] {
    return [...this.keys].map(([id, secret]) => hashUnder({ id, secret }, plaintext));
  }

  /** @throws VaultError when the value cannot be opened; the message contains nothing of it. */
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

function hashUnder({ id, secret }: EncryptionKey, plaintext: string): string {
  const key = Buffer.from(hkdfSync('sha256', secret, '', 'slipway value hash', 32));
  return `${id}.${createHmac('sha256', key).update(plaintext, 'utf8').digest('base64url')}`;
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

/**
 * Returns the keys of an embedded database from `<dataDir>/encryption-keys`, a file that the first start creates (mode 0600).
 * Losing this file loses every stored header and token, so it lives next to the data it encrypts.
 *
 * @param mayCreate false if a database already exists: a new key would open nothing in it
 * @throws StartError when the file contains no keys, or no longer exists
 */
export async function keysFromFile(dataDir: string, mayCreate: boolean): Promise<EncryptionKey[]> {
  const file = path.join(dataDir, 'encryption-keys');
  const unusable = ({ message }: Error): never => {
    throw new StartError(
      `The database cannot be kept in ${dataDir} (${message}): ` +
        'make the folder writable, choose another one, or set DATABASE_URL.',
    );
  };
  await makeFolder(dataDir, PASSABLE).catch(unusable);
  let content = await readIfThere(file);
  if (content === null && mayCreate) {
    content = await createOnce(file, `k1:${randomBytes(32).toString('base64')}\n`, 0o600).catch(unusable);
  }
  if (content === null) {
    throw new StartError(`${file} is missing: restore it or set ENCRYPTION_KEYS, since it opens the stored headers.`);
  }
  try {
    const { encryptionKeys } = loadEnv({ ENCRYPTION_KEYS: content });
    if (encryptionKeys) return encryptionKeys;
  } catch {
    // The error below names the file, since ENCRYPTION_KEYS is not set.
  }
  throw new StartError(
    `${file} does not hold encryption keys (id:base64): restore it, since it opens the stored headers.`,
  );
}
