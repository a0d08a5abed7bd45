import { databaseFault } from '../platform/checks/connect-checks.js';
import { nearestName } from '../platform/text/nearest.js';
import { visible } from '../platform/text/quoted.js';
import { UsageError } from './usage-error.js';

const USAGE = `Usage: npm run slipway -- COMMAND

  keys [--account NAME] [--name LABEL] [--scopes read,call:acme]
                                        make an API key, the operator's by default, and print it
  keys --invite NAME                    print a link by which a person chooses a password
  migrate                               bring the database to this version
  secrets verify | rotate               open all stored secrets, or seal them with the first key
  backup FOLDER [--with-keys]           copy the database and all files into a new folder;
         [--without-logs]               without the runtime logs
  restore FOLDER                        load a backup into an empty database and data folder
  move                                  copy the embedded database to DATABASE_URL, and files to BLOB_URL
  upgrade --check                       say what this version would refuse or change, before it is started
  doctor [--tuning]                     check what the service needs, and say what to do; or print the fixed limits
`;

interface Command {
  run(args: string[]): Promise<number>;
}

/** Commands, imported when called: each command loads other parts of the service. */
const commands = new Map<string, () => Promise<Command>>([
  ['keys', () => import('./keys.command.js')],
  ['migrate', () => import('./migrate.command.js')],
  ['secrets', () => import('./secrets.command.js')],
  ['backup', () => import('./backup.command.js')],
  ['restore', () => import('./restore.command.js')],
  ['move', () => import('./move.command.js')],
  ['upgrade', () => import('./upgrade.command.js')],
  ['doctor', () => import('./doctor.command.js')],
]);

/** @returns the exit code; 2 for arguments that the command does not take */
async function run([name = '', ...args]: string[]): Promise<number> {
  const load = commands.get(name);
  if (!load || args.includes('--help')) {
    const isAsked = name === '--help' || args.includes('--help');
    const nearest = nearestName(name, commands.keys());
    const fault = `Unknown command ${visible(name, 60)}.${nearest === null ? '' : ` Did you mean ${nearest}?`}\n`;
    if (name !== '' && !isAsked) process.stderr.write(fault);
    (isAsked ? process.stdout : process.stderr).write(USAGE);
    return isAsked ? 0 : 2;
  }
  try {
    return await (await load()).run(args);
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException;
    process.stderr.write(`slipway ${name} failed: ${databaseFault(error) ?? message}\n`);
    return error instanceof UsageError || code.startsWith('ERR_PARSE_ARGS') ? 2 : 1;
  }
}

process.exit(await run(process.argv.slice(2)));
