import { parseArgs } from 'node:util';
import { ApiKeysRepository, OPERATOR } from '../modules/auth/api-keys.repository.js';
import { runCommand, withDatabase } from './with-database.js';

const USAGE = 'Usage: npm run keys [-- --account NAME --name LABEL]\n';

/** `npm run keys`: makes an API key, the operator's unless another account is named, and prints it. */
async function run(): Promise<number> {
  const { values } = parseArgs({
    options: {
      account: { type: 'string', default: OPERATOR },
      name: { type: 'string', default: 'made on the command line' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(USAGE);
    return 0;
  }
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

runCommand(run, 'No key was made');
