import { keyUses, rotateSealed, verifySealed } from '../platform/vault/sealed-values.repository.js';
import { Vault } from '../platform/vault/vault.js';
import { UsageError } from './usage-error.js';
import { withDatabase } from './with-database.js';

/**
 * `slipway secrets verify` opens every sealed value and counts them by key; `rotate` seals all with the first key of
 * ENCRYPTION_KEYS. Both can run while the service runs, and again after an interruption.
 *
 * @returns 1 when a value does not open, or is stored in clear
 */
export async function run([action]: string[]): Promise<number> {
  if (action !== 'verify' && action !== 'rotate') throw new UsageError('name verify or rotate');
  return withDatabase({ migrate: 'off' }, async ({ env, source }) => {
    const vault = new Vault(env.encryptionKeys ?? []);
    if (action === 'rotate') {
      const { rotated } = await rotateSealed(source, vault);
      process.stdout.write(`Sealed with the key "${vault.writerId}": ${rotated}\n`);
    }
    const { opened, broken, clear } = await verifySealed(source, vault);
    for (const { keyId, counts } of await keyUses(source)) {
      for (const [place, count] of Object.entries(counts)) process.stdout.write(`${keyId}  ${place}  ${count}\n`);
    }
    process.stdout.write(`Opened: ${opened}\n`);
    for (const [place, count] of Object.entries(broken)) process.stderr.write(`Does not open: ${place}  ${count}\n`);
    for (const [place, count] of Object.entries(clear)) {
      process.stderr.write(`In clear, until npm run secrets -- rotate: ${place}  ${count}\n`);
    }
    return Object.keys({ ...broken, ...clear }).length === 0 ? 0 : 1;
  });
}
