import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The rows of `changes` for one table. `r` in SQL is its row: the new one, or the deleted one. */
interface Recorded {
  table: string;
  kind: string;
  /** The columns that are shown, by the name of their member. None of them holds a secret. */
  shown: Record<string, string>;
  /** Columns whose values are not shown. */
  hidden?: string[];
  /** SQL: the id of the target, `r.id` by default. */
  id?: string;
  /** SQL: the account that owns the target. Nothing is recorded where it is null. */
  account: string;
  /** SQL: the account that owned the target before an update, which gets a row of its own if it is another one. */
  formerAccount?: string;
  /** SQL: the name of the target. */
  name: string;
  /** Updates are not recorded. */
  isFixed?: boolean;
}

const ofNamespace = (column: string) => `(SELECT ${column} FROM namespaces n WHERE n.id = r.namespace_id)`;
const ofServer = (column: string) =>
  `(SELECT ${column} FROM servers s JOIN namespaces n ON n.id = s.namespace_id WHERE s.id = r.server_id)`;
const ofTarget = (column: string) =>
  `(SELECT ${column} FROM namespaces n
      LEFT JOIN servers s ON s.id = r.server_id LEFT JOIN connections c ON c.id = r.connection_id
     WHERE n.id = coalesce(r.namespace_id, s.namespace_id, c.namespace_id))`;
const accountName = (id: string) => `(SELECT a.name FROM accounts a WHERE a.id = ${id})`;

const RECORDED: Recorded[] = [
  {
    table: 'accounts',
    kind: 'account',
    shown: { name: 'name', kind: 'kind', isOperator: 'is_operator', disabledAt: 'disabled_at' },
    account: 'r.id',
    name: 'r.name',
  },
  {
    table: 'account_limits',
    kind: 'limit',
    shown: { value: 'value' },
    id: 'r.account_id',
    account: 'r.account_id',
    name: 'r.name',
  },
  {
    table: 'api_keys',
    kind: 'key',
    shown: { prefix: 'prefix', scopes: 'scopes', expiresAt: 'expires_at', replacedBy: 'replaced_by' },
    account: 'r.account_id',
    name: 'r.name',
  },
  {
    table: 'people',
    kind: 'password',
    shown: {},
    hidden: ['password_hash'],
    id: 'r.account_id',
    account: 'r.account_id',
    name: accountName('r.account_id'),
  },
  {
    table: 'sessions',
    kind: 'session',
    shown: { address: 'address', agent: 'agent', keyId: 'key_id' },
    // An expired one is deleted by its age.
    account: "CASE WHEN TG_OP = 'INSERT' OR r.expires_at > now() THEN r.account_id END",
    name: accountName('r.account_id'),
    isFixed: true,
  },
  {
    table: 'as_grants',
    kind: 'login',
    shown: { client: 'client_name', resource: 'resource', address: 'address', keyId: 'key_id' },
    account: "CASE WHEN TG_OP = 'INSERT' OR r.expires_at > now() THEN r.account_id END",
    name: 'r.resource',
    isFixed: true,
  },
  {
    table: 'memberships',
    kind: 'member',
    shown: { role: 'role' },
    id: 'r.account_id',
    account: 'r.organization_id',
    name: accountName('r.account_id'),
  },
  {
    table: 'invitations',
    kind: 'invitation',
    shown: { role: 'role', expiresAt: 'expires_at', usedAt: 'used_at' },
    // A used one is deleted by its age.
    account: "CASE WHEN TG_OP <> 'DELETE' OR r.used_at IS NULL THEN r.account_id END",
    name: `coalesce(${accountName('r.invited_id')}, ${accountName('r.account_id')})`,
  },
  {
    table: 'grants',
    kind: 'grant',
    shown: { accountId: 'subject_id', level: 'level', tools: 'tools', expiresAt: 'expires_at' },
    account: ofTarget('n.account_id'),
    name: ofTarget("concat_ws('/', n.name, nullif(s.name, ''), c.connection_id)"),
  },
  {
    table: 'namespaces',
    kind: 'namespace',
    shown: { accountId: 'account_id', suspended: 'suspended' },
    account: 'r.account_id',
    formerAccount: 'OLD.account_id',
    name: 'r.name',
  },
  {
    table: 'servers',
    kind: 'server',
    shown: {
      namespaceId: 'namespace_id',
      name: 'name',
      displayName: 'display_name',
      description: 'description',
      slug: 'slug',
      homepage: 'homepage',
      repositoryUrl: 'repository_url',
      license: 'license',
      iconUrl: 'icon_url',
      unlisted: 'unlisted',
      visibility: 'visibility',
      confirmSecrets: 'confirm_secrets',
      verified: 'verified',
      currentReleaseId: 'current_release_id',
      suspended: 'suspended',
    },
    account: ofNamespace('n.account_id'),
    formerAccount: '(SELECT n.account_id FROM namespaces n WHERE n.id = OLD.namespace_id)',
    name: ofNamespace("concat_ws('/', n.name, nullif(r.name, ''))"),
  },
  {
    table: 'server_runtime',
    kind: 'runtime',
    shown: { egressAllow: 'egress_allow', logPayloads: 'log_payloads' },
    id: 'r.server_id',
    account: ofServer('n.account_id'),
    name: ofServer("concat_ws('/', n.name, nullif(s.name, ''))"),
  },
  {
    table: 'server_secrets',
    kind: 'secret',
    shown: { name: 'name' },
    // The time of the value.
    hidden: ['created_at'],
    account: ofServer('n.account_id'),
    name: ofServer("concat_ws('/', n.name, nullif(s.name, ''), r.name)"),
  },
  {
    table: 'releases',
    kind: 'release',
    shown: { number: 'number', type: 'type' },
    // Old ones are deleted by their number.
    account: `CASE WHEN TG_OP = 'INSERT' THEN ${ofServer('n.account_id')} END`,
    name: ofServer("concat_ws('/', n.name, nullif(s.name, '')) || '@' || r.number"),
    isFixed: true,
  },
  {
    table: 'connections',
    kind: 'connection',
    shown: {
      name: 'name',
      mcpUrl: 'mcp_url',
      server: 'server_name',
      tools: 'tools',
      callTimeoutMs: 'call_timeout_ms',
      recordingUntil: 'recording_until',
      suspended: 'suspended',
    },
    hidden: ['metadata', 'setup_epoch', 'oauth'],
    account: ofNamespace('n.account_id'),
    name: ofNamespace("concat_ws('/', n.name, r.connection_id)"),
  },
];

/**
 * The values that a connection sends differ. The epoch counts their changes, but also the move of a namespace; the sealed text
 * changes even when the encryption key is rotated.
 */
const SENT_DIFFERS = `old.setup_epoch <> new.setup_epoch
  AND (old.sealed_url, old.sealed_headers, old.sealed_query, old.sealed_oauth_secret)
  IS DISTINCT FROM (new.sealed_url, new.sealed_headers, new.sealed_query, new.sealed_oauth_secret)`;

/** The trigger function of a table, and its triggers. An update of other columns calls none. */
function recorder(recorded: Recorded): string[] {
  const {
    table,
    kind,
    shown,
    hidden = [],
    id = 'r.id',
    isFixed = false,
    account,
    formerAccount = account,
    name,
  } = recorded;
  const columns = [...Object.values(shown), ...hidden];
  // Earlier versions stored query values in clear text.
  const value = (row: string, column: string) =>
    column === 'mcp_url' ? `split_part(${row}.mcp_url, '?', 1)` : `${row}.${column}`;
  const differs = (column: string) =>
    column === 'setup_epoch' ? SENT_DIFFERS : `${value('old', column)} IS DISTINCT FROM ${value('new', column)}`;
  const values = (row: string) =>
    `jsonb_build_object(${Object.entries(shown)
      .map(([member, column]) => `'${member}', ${value(row, column)}`)
      .join(', ')})`;
  return [
    `CREATE FUNCTION record_change_of_${table}() RETURNS trigger LANGUAGE plpgsql AS $$
     DECLARE
       r ${table};
       was jsonb;
       is_now jsonb;
     BEGIN
       IF TG_OP = 'DELETE' THEN r := OLD; ELSE r := NEW; END IF;
       IF TG_OP <> 'INSERT' THEN was := ${values('OLD')}; END IF;
       IF TG_OP <> 'DELETE' THEN is_now := ${values('NEW')}; END IF;
       PERFORM record_change('${kind}', TG_OP, ${id}, owner, ${name}, was, is_now) FROM (
         SELECT ${account} UNION SELECT CASE WHEN TG_OP = 'UPDATE' THEN ${formerAccount} END) AS owners(owner);
       RETURN NULL;
     END $$`,
    `CREATE TRIGGER ${table}_record_rows AFTER INSERT OR DELETE ON ${table}
       FOR EACH ROW EXECUTE FUNCTION record_change_of_${table}()`,
    ...(isFixed
      ? []
      : [
          `CREATE TRIGGER ${table}_record_changes AFTER UPDATE OF ${columns.join(', ')} ON ${table}
             FOR EACH ROW WHEN (${columns.map(differs).join(' OR ')})
             EXECUTE FUNCTION record_change_of_${table}()`,
        ]),
  ];
}

/**
 * The record of changes. Triggers write it, in the transaction of the change, so that no change is without its row. The
 * settings `slipway.actor` and `slipway.credential` of the transaction name who made it.
 */
export class Changes1795770000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      `CREATE TABLE changes (
         id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT changes_pk PRIMARY KEY,
         created_at timestamptz(3) NOT NULL DEFAULT clock_timestamp(),
         account_id uuid NOT NULL,
         actor_id uuid,
         credential_id uuid,
         action text NOT NULL,
         target_id uuid NOT NULL,
         target text NOT NULL,
         before jsonb,
         after jsonb,
         is_fact boolean NOT NULL DEFAULT false
       )`,
    );
    await runner.query('CREATE INDEX changes_account ON changes (account_id, created_at, id) WHERE NOT is_fact');
    await runner.query(
      'CREATE INDEX changes_actor ON changes (actor_id, created_at, id) WHERE actor_id IS NOT NULL AND NOT is_fact',
    );
    await runner.query(
      'CREATE INDEX changes_credential ON changes (credential_id, action) WHERE credential_id IS NOT NULL',
    );
    await runner.query('CREATE INDEX changes_facts ON changes (created_at) WHERE is_fact');
    await runner.query(
      `CREATE FUNCTION current_credential() RETURNS uuid LANGUAGE sql STABLE AS $$
         SELECT nullif(current_setting('slipway.credential', true), '')::uuid $$`,
    );
    // A null account: the target goes with its owner, whose deletion is recorded.
    await runner.query(
      `CREATE FUNCTION record_change(kind text, operation text, target_id uuid, account_id uuid, target text, was jsonb, is_now jsonb)
       RETURNS void LANGUAGE sql AS $$
         INSERT INTO changes (account_id, actor_id, credential_id, action, target_id, target, before, after)
         SELECT account_id, nullif(current_setting('slipway.actor', true), '')::uuid,
                current_credential(), kind || CASE operation WHEN 'INSERT' THEN '.created' WHEN 'DELETE' THEN '.deleted' ELSE '.changed' END,
                target_id, coalesce(target, ''),
                (SELECT jsonb_object_agg(key, value) FROM jsonb_each(was) WHERE value IS DISTINCT FROM coalesce(is_now, 'null')->key),
                (SELECT jsonb_object_agg(key, value) FROM jsonb_each(is_now) WHERE value IS DISTINCT FROM coalesce(was, 'null')->key)
          WHERE account_id IS NOT NULL $$`,
    );
    for (const statement of RECORDED.flatMap(recorder)) await runner.query(statement);
    await runner.query('ALTER TABLE invitations ALTER made_by_key SET DEFAULT current_credential()');
  }

  async down(runner: QueryRunner): Promise<void> {
    for (const { table } of RECORDED) await runner.query(`DROP FUNCTION record_change_of_${table}() CASCADE`);
    await runner.query('DROP FUNCTION record_change');
    await runner.query('DROP TABLE changes');
    await runner.query('ALTER TABLE invitations ALTER made_by_key DROP DEFAULT');
    await runner.query('DROP FUNCTION current_credential');
  }
}
