/**
 * SQL is an import that neither the compiler nor `npm run boundaries` sees. The statements of a module name its own tables
 * and those of the modules that .dependency-cruiser.cjs lets it import; those of `platform`, `mcp` and `hosting` name the
 * tables of their own folder and of `platform`. What else they name stands in `exceptions`, with its reason.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect, it } from '@jest/globals';
import { filesUnder, repoPath } from '../scripts/lib.mjs';

interface Rule {
  name: string;
  to: { pathNot: string[] };
}

const { forbidden } = createRequire(import.meta.url)('../.dependency-cruiser.cjs') as { forbidden: Rule[] };

/** Tables without an entity, by the folder whose migration made them. */
const withoutEntity = {
  account_limits: 'modules/auth',
  account_log_days: 'modules/auth',
  changes: 'extensions/changes',
  event_handlers: 'extensions/events',
  event_deliveries: 'extensions/events',
  identities: 'extensions/sign-in-oidc',
  recorded_calls: 'extensions/recordings',
  invocations: 'modules/logs',
  invocation_hours: 'modules/logs',
  deleted_invocation_owners: 'modules/logs',
  log_batches: 'modules/logs',
  blob_garbage: 'modules/releases',
  targets: 'modules/targets',
};

const visibility = 'whether a caller may find a server is one condition in every statement that lists or reads servers';
const logNames = 'names of what a log line is about, for the services of any module';
const membership = 'the removal of a member ends the OAuth logins that the membership opened, in the same transaction';
const exceptions: Record<string, string> = {
  'modules/auth grants': visibility,
  'modules/auth namespaces': visibility,
  'modules/auth as_grants': 'the rotation of a key moves its logins in the same transaction',
  'modules/auth sessions':
    'disabling an account ends its sessions, and the rotation of a key moves them, in the same transaction',
  'modules/auth invitations': 'disabling an account ends its invitations in the same transaction',
  'modules/auth people': 'a person who joins an organization gets an account and its password in the same transaction',
  'modules/auth identities': 'whether a person signs in by the directory of the company, in the list of accounts',
  'modules/auth changes': 'what a key made is read from the record, to be ended with the key',
  'extensions/author-pages namespaces': 'names of namespaces of accounts, which no facade lists',
  'extensions/author-pages servers': 'servers of accounts without a release, and the name of the one at an address',
  'extensions/author-pages releases': 'the newest release of such a server, in the same statement',
  'extensions/sign-in-oidc people': 'whether an identity is the last way to sign in, in the statement that removes it',
  ...Object.fromEntries(
    ['invocations', 'connections', 'servers', 'namespaces', 'accounts', 'api_keys', 'as_grants'].map((table) => [
      `extensions/calls-pages ${table}`,
      'the calls of all targets of an account, with the names of callers, are one statement',
    ]),
  ),
  ...Object.fromEntries(
    ['accounts', 'account_log_days', 'connections', 'namespaces', 'release_artifacts', 'releases', 'servers'].map(
      (table) => [
        `extensions/service-page ${table}`,
        'what the whole service stores and suspends, for operators alone',
      ],
    ),
  ),
  'extensions/console-pages connections': 'numbers of connections by state, which no facade counts',
  'extensions/console-pages invocations': 'the newest call of each connection of a page, in one statement',
  'extensions/changes accounts': 'the names of actors',
  'extensions/events changes': 'an event is a row of the record',
  'modules/connections recorded_calls':
    'a connection with another address loses its recorded calls in the same statement',
  'extensions/recordings connections': 'the end of a recording stands in the row of its connection',
  'modules/auth connections': membership,
  'modules/auth servers': membership,
  'modules/connections as_grants':
    'the move of a namespace ends the OAuth logins to what it holds, in the same transaction',
  'modules/logs as_grants': 'the name of the app behind a credential, in the statement that reads a page of the log',
  'modules/logs sessions': 'the name of the browser behind a credential, in the same statement',
  'modules/logs connections': 'a row is stored only while its connection exists, which the statement locks',
  'modules/targets namespaces': 'names of the namespaces of an account, newest first, which the view does not know',
  'modules/servers releases': 'the sealed URL of the current release, in the one statement of each call of a server',
  'platform/telemetry connections': logNames,
  'platform/telemetry namespaces': logNames,
  'platform/telemetry releases': logNames,
  'platform/telemetry servers': logNames,
  'platform/vault servers': 'the vault knows each sealed column and its owner, to seal all of them again',
  'platform/database namespaces': 'a copy of the database is verified by what it contains',
};

const folderOf = (file: string) => /^src\/(modules\/[^/]+|[^/]+(?:\/[^/]+)?)/.exec(file)?.[1] ?? '';

const sources = filesUnder('src')
  .map((path) => repoPath(path))
  .filter((file) => /(?<!\.spec)\.ts$/.test(file))
  .map((file) => ({ file, folder: folderOf(file), text: readFileSync(file, 'utf8') }));

const owners = new Map(Object.entries(withoutEntity));
for (const { folder, text } of sources) {
  for (const [, table] of text.matchAll(/@Entity\((?:\{ name: )?'(\w+)'/g)) owners.set(table ?? '', folder);
}

/** True if statements in `folder` may name tables of `owner`. */
function mayName(folder: string, owner: string): boolean {
  if (folder === owner || owner.startsWith('platform/')) return true;
  const rule = forbidden.find(({ name }) => name === `modules-${folder.replace('modules/', '')}`);
  if (rule) return rule.to.pathNot.some((pattern) => new RegExp(pattern).test(`src/${owner}/`));
  // A module that no other one imports.
  return folder.startsWith('modules/') && owner.startsWith('modules/');
}

it('names in SQL only tables of the same folder and of lower ones, apart from the exceptions', () => {
  const upward = new Set<string>();
  for (const { folder, text } of sources) {
    for (const [, table = ''] of text.matchAll(/\b(?:FROM|JOIN|INTO|UPDATE|TABLE|USING)\s+(?:ONLY\s+)?"?([a-z_]+)/g)) {
      const owner = owners.get(table);
      if (owner !== undefined && !mayName(folder, owner)) upward.add(`${folder} ${table}`);
    }
  }
  expect([...upward].sort()).toEqual(Object.keys(exceptions).sort());
});
