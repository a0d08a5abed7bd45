import { parseArgs } from 'node:util';
import { ApiKeysRepository, OPERATOR } from '../modules/auth/api-keys.repository.js';
import { parseScopes } from '../modules/auth/may.js';
import { makeInvitation } from '../modules/people/invitations.service.js';
import { PeopleRepository } from '../modules/people/people.repository.js';
import { runningBaseUrl } from '../platform/processes/processes.repository.js';
import { withDatabase } from './with-database.js';

/**
 * `slipway keys`: creates and prints an API key of the operator with all rights, unless another account or scopes are
 * named. `--invite NAME` prints an invitation link for a person instead, and creates a missing account.
 */
export async function run(args: string[]): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      account: { type: 'string', default: OPERATOR },
      name: { type: 'string', default: 'made on the command line' },
      scopes: { type: 'string' },
      invite: { type: 'string' },
    },
  });
  if (values.invite !== undefined) return invite(values.invite);
  const scopes = values.scopes?.split(',') ?? null;
  parseScopes(scopes ?? []);
  return withDatabase({}, async ({ source, firstKey }) => {
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

async function invite(name: string): Promise<number> {
  if (!/^[^\p{Cc}]{1,255}$/u.test(name)) {
    process.stderr.write('A name has 1 to 255 characters, without line ends.\n');
    return 1;
  }
  return withDatabase({}, async ({ env, source, firstKey }) => {
    if (firstKey !== null) process.stdout.write(`First API key of ${OPERATOR}, with all rights:\n${firstKey}\n`);
    const { accountId, operatorId } = await new ApiKeysRepository(source).ensureAccount(name);
    const running = await runningBaseUrl(source);
    const service = running === null ? env : env.copyWith({ publicUrl: running });
    const { url, expiresAt } = await makeInvitation(new PeopleRepository(source), service, accountId, {
      accountId: operatorId,
    });
    process.stdout.write(`Invitation for ${name}. It works once, until ${expiresAt}:\n${url}\n`);
    if (running === null) {
      const setting = env.publicUrl === null ? 'HOST and PORT' : 'PUBLIC_URL';
      process.stdout.write(`No service runs: its address is taken from ${setting} of this command.\n`);
    }
    return 0;
  });
}
