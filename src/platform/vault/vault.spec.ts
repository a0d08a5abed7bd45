import { randomBytes } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { Vault, VaultError } from './vault.js';

const key = (id: string) => ({ id, secret: randomBytes(32) });
const [k1, k2] = [key('k1'), key('k2')];

describe('Vault', () => {
  it.each(['', 'x', 'Bearer secret', 'ünï 🔑 \u0000', 'x'.repeat(100_000)])('opens what it sealed', (text) => {
    const vault = new Vault([k1]);
    const sealed = vault.seal(text, 'row-1');
    expect(vault.open(sealed, 'row-1')).toBe(text);
    if (text.length > 1) expect(Buffer.from(sealed).includes(text)).toBe(false);
  });

  it('seals the same text differently each time', () => {
    const vault = new Vault([k1]);
    const sealed = Array.from({ length: 50 }, () => vault.seal('same', 'row-1'));
    expect(new Set(sealed).size).toBe(50);
    expect(new Set(sealed.map((text) => text.split('.')[2])).size).toBe(50);
  });

  it('uses no nonce twice under a key', () => {
    const vault = new Vault([k1]);
    const parts = Array.from({ length: 50 }, () => vault.seal('same', 'row-1').split('.').slice(1)).flat();
    const nonces = parts.map((part) => Buffer.from(part, 'base64url').toString('hex', 0, 12));
    expect(new Set(nonces).size).toBe(100);
  });

  it('does not open a value for another owner', () => {
    const vault = new Vault([k1]);
    expect(() => vault.open(vault.seal('secret', 'row-1'), 'row-2')).toThrow(VaultError);
    expect(() => vault.open(vault.seal('secret', 'row-1'), '')).toThrow(VaultError);
  });

  it('does not open a value that was changed anywhere', () => {
    const vault = new Vault([k1, k2]);
    const sealed = vault.seal('secret', 'row-1');
    const [id = '', wrapped = '', value = ''] = sealed.split('.');
    const flipped = (text: string, at: number) => {
      const bytes = Buffer.from(text, 'base64url');
      bytes[at] = bytes[at] ^ 1;
      return bytes.toString('base64url');
    };
    const parts = (text: string) => Array.from({ length: Buffer.from(text, 'base64url').length }, (_, i) => i);
    const changed = [
      ...parts(wrapped).map((at) => `${id}.${flipped(wrapped, at)}.${value}`),
      ...parts(value).map((at) => `${id}.${wrapped}.${flipped(value, at)}`),
      `k2.${wrapped}.${value}`,
      `${id}.${value}.${wrapped}`,
      `${id}.${wrapped}.`,
      `${id}.${wrapped}`,
      `${id}..${value}`,
      `${id}.${wrapped}.AAAA`,
      vault.seal('other', 'row-1').replace(/\.[^.]+$/, `.${value}`),
    ];
    for (const text of changed) expect(() => vault.open(text, 'row-1')).toThrow(VaultError);
  });

  it('writes with the first key and reads with all of them, so that keys can be rotated', () => {
    const old = new Vault([k1]).seal('secret', 'row-1');
    const both = new Vault([k2, k1]);
    expect(both.open(old, 'row-1')).toBe('secret');
    const fresh = both.seal('secret', 'row-1');
    expect(fresh).toMatch(/^k2\./);
    expect(new Vault([k2]).open(fresh, 'row-1')).toBe('secret');
  });

  it('names the missing key and nothing of the value', () => {
    const sealed = new Vault([k1]).seal('secret', 'row-1');
    const open = () => new Vault([k2]).open(sealed, 'row-1');
    expect(open).toThrow('A stored secret was sealed with the key "k1", which ENCRYPTION_KEYS does not hold.');
  });

  it('refuses a wrong key with the right name', () => {
    const sealed = new Vault([k1]).seal('secret', 'row-1');
    const open = () => new Vault([{ ...k2, id: 'k1' }]).open(sealed, 'row-1');
    expect(open).toThrow('A stored secret does not open with the key "k1": it was changed or the key is wrong.');
  });

  it('needs a key', () => {
    expect(() => new Vault([])).toThrow(VaultError);
  });
});
