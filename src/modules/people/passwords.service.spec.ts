import { expect, it } from '@jest/globals';
import { PasswordsService } from './passwords.service.js';

it('hashes a password with a new salt each time', async () => {
  const passwords = new PasswordsService(undefined as never, undefined as never);
  const hashes = await Promise.all([passwords.hash('a long password'), passwords.hash('a long password')]);
  for (const hash of hashes) expect(hash).toMatch(/^scrypt\$15\$8\$1\$[\w-]{22}\$[\w-]{43}$/);
  expect(hashes[0]).not.toBe(hashes[1]);
}, 30_000);
