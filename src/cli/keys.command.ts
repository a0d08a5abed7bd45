import { parseArgs } from 'node:util';
import { ApiKeysRepository, OPERATOR } from '../modules/auth/api-keys.repository.js';
import { withDatabase } from './with-database.js';

/** `slipway keys`: makes an API key, the operator's unless another account is named, and prints it. */
export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      account: { type: 'string', default: OPERATOR },
      name: { type: 'string', default: 'made on the command line' },
    },
  });
  return withDatabase({}, async ({ source, firstKey }) => {
    // On an empty database the operator's first key was made just now: it must not be lost.
    const isFirst = firstKey !== null && values.account === OPERATOR;
    const key = isFirst ? firstKey : await new ApiKeysRepository(source).addKey(values.account, values.name);
    if (key === null) {
      process.stderr.write(
        `There is no account named "${values.account}": the operator makes one with POST /accounts.\n`,
      );
      return 1;
    }
    process.stdout.write(`API key of ${values.account}, shown this once:\n${key}\n`);
    return 0;
  });
}
