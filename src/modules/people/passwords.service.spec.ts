import { expect, it } from '@jest/globals';
import { PasswordsService } from './passwords.service.js';

it('at most two passwords are hashed concurrently, twenty wait, and further ones are rejected until one is done', async () => {
  const passwords = new PasswordsService(undefined as never, undefined as never);
  const hash = () => passwords.hash('a long password');
  const hashes = Array.from({ length: 22 }, hash);
  await expect(hash()).rejects.toMatchObject({ kind: 'rate_limited', retryAfterSeconds: 2 });
  await Promise.all(hashes);
  await expect(hash()).resolves.toMatch(/^scrypt\$15\$8\$1\$/);
}, 30_000);
