import { parseArgs } from 'node:util';
import { ApiKeysRepository, OPERATOR } from '../modules/auth/api-keys.repository.js';
import { parseScopes } from '../modules/auth/may.js';
import { withDatabase } from './with-database.js';

/** `slipway keys`: makes an API key, with all rights unless scopes are named, of the operator unless another account is, and prints it. */
export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      account: { type: 'string', default: OPERATOR },
      name: { type: 'string', default: 'made on the command line' },
      scopes: { type: 'string' },
    },
  });
  const scopes = values.scopes?.split(',') ?? null;
  parseScopes(scopes ?? []);
  return withDatabase({}, async ({ source, firstKey }) => {
    // On an empty database the operator's first key was made just now: it must not be lost.
    const isFirst = firstKey !== null && values.account === OPERATOR;
    const key =
      isFirst && !scopes ? firstKey : await new ApiKeysRepository(source).addKey(values.account, values.name, scopes);
    if (key === null) {
      process.stderr.write(
        `There is no account named "${values.account}": the operator makes one with POST /accounts.\n`,
      );
      return 1;
    }
    if (isFirst && scopes) process.stdout.write(`First API key of ${OPERATOR}, with all rights:\n${firstKey}\n`);
    process.stdout.write(`API key of ${values.account}, shown this once:\n${key}\n`);
    return 0;
  });
}
