import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import type { ServerInfo } from '../../../mcp/protocol/protocol.js';
import type { GrantLevel, Role } from '../../auth/access.types.js';
import { accountsOf, grantsTo } from '../../auth/memberships.access.js';
import type { IconOrigin } from '../../servers/server-urls.service.js';
import type { LastUseRow } from '../grant.types.js';
import type { UsableCountsDto, UsableKind, UsableSection, UsableWaitingDto } from './usable.dto.js';
import { usableStates, type UsableState } from './usable.types.js';

export interface UsableFilter {
  section: UsableSection;
  accountId: string;
  /** Names of namespaces; null stands for all. */
  namespaces: string[] | null;
  q?: string;
  /** Id or name of the owner. */
  owner?: string;
}

export type UsableKey = readonly [namespace: string, name: string, kind: string];

export interface UsablePage {
  state?: UsableState;
  after?: UsableKey;
  limit: number;
}

/** Returns a sort order with trailing numbers by value: `db-10` follows `db-9`. */
const natural = (text: string) => `rtrim(${text}, '0123456789') COLLATE "C", length(${text}), ${text} COLLATE "C"`;
const orderOf = ([namespace, name, kind]: UsableKey) => `${natural(namespace)}, ${natural(name)}, ${kind} COLLATE "C"`;
const ROW_ORDER = orderOf(['space', 'name', 'kind']);

/** A grant; times are in ISO 8601. */
export interface UsableGrant {
  id: string;
  level: GrantLevel;
  tools: string[] | null;
  /** An account or organization; null for everybody. */
  subject: string | null;
  /** Name of the account that granted access; null after its deletion. */
  grantedBy: string | null;
  createdAt: string;
  expiresAt: string | null;
}

export interface UsableRow extends IconOrigin, LastUseRow {
  kind: UsableKind;
  namespace: string;
  /** The part of the address after the slash, or ''. */
  name: string;
  title: string | null;
  ownerId: string;
  ownerName: string;
  isOwn: boolean;
  /** Role in the organization that owns the target; null without an organization. */
  role: Role | null;
  /** Grants, strongest first; null without any. */
  grants: UsableGrant[] | null;
  /** Number of connections of a namespace; null for other kinds. */
  connections: number | null;
  /** Null if nothing is pending. */
  waiting: UsableWaitingDto | null;
  isPublic: boolean;
  isSuspended: boolean;
  state: string | null;
  reason: string | null;
  since: Date | null;
  /** Id of the row, which the setup page of a connection uses. */
  id: string | null;
  setupEpoch: number | null;
  serverInfo: ServerInfo | null;
}

@Injectable()
export class UsableRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /** Lists targets in natural order. One statement selects the page by names, then reads the other columns. */
  list(filter: UsableFilter, { state, after, limit }: UsablePage): Promise<UsableRow[]> {
    const { tables, account, values, add } = this.find(filter);
    // A namespace has a row for each state of its connections, and each row counts all of them.
    const isMatch = state === undefined ? 'true' : `state = ${add(state)}`;
    const isWaiting = `p.kind = 'namespace' AND p.needs > 0 AND ${state === undefined || state === 'needs'}`;
    const conditions = [`(${isMatch} OR kind = 'namespace')`];
    if (after) {
      const [namespace, name, kind] = after.map((part) => `${add(part)}::text`) as [string, string, string];
      conditions.push(`(${ROW_ORDER}) > (${orderOf([namespace, name, kind])})`);
    }
    return this.database.query<UsableRow[]>(
      `WITH ${tables},
       page AS MATERIALIZED (
         SELECT space, name, kind, id, namespace_id, (sum(connections) FILTER (WHERE ${isMatch}))::int AS connections,
                sum(connections)::int AS total, (sum(connections) FILTER (WHERE state = 'needs'))::int AS needs,
                (sum(logins) FILTER (WHERE state = 'needs'))::int AS logins
           FROM found WHERE ${conditions.join(' AND ')} GROUP BY space, name, kind, id, namespace_id
         HAVING bool_or(${isMatch}) ORDER BY ${ROW_ORDER} LIMIT ${add(limit)})
       SELECT p.kind, p.connections, CASE WHEN ${isWaiting} THEN json_build_object('connections', p.total,
                'logins', p.logins, 'values', p.needs - p.logins) END AS waiting, n.name AS namespace, p.name,
              coalesce(c.name, s.display_name) AS title, a.id AS "ownerId", a.name AS "ownerName",
              a.id = ${account} AS "isOwn", m.role, opened.grants, coalesce(s.visibility = 'public', false) AS "isPublic",
              coalesce(c.suspended, s.suspended, n.suspended) IS NOT NULL AS "isSuspended",
              c.status_state AS state, c.status_reason AS reason, c.status_since AS since, c.id, c.setup_epoch AS "setupEpoch",
              c.server_info AS "serverInfo",
              s.icon_url AS "iconUrl", i.source AS "iconSource",
              u.at AS "usedAt", u.kind AS "usedKind", u.client AS "usedClient", u.credential_id AS "usedCredential"
         FROM page p JOIN namespaces n ON n.id = p.namespace_id JOIN accounts a ON a.id = n.account_id
         LEFT JOIN connections c ON p.kind = 'connection' AND c.id = p.id
         LEFT JOIN servers s ON p.kind = 'server' AND s.id = p.id
         LEFT JOIN server_icons i ON i.server_id = s.id AND i.hash IS NOT NULL
         LEFT JOIN memberships m ON m.organization_id = a.id AND m.account_id = ${account} AND a.disabled_at IS NULL
         LEFT JOIN last_uses u ON u.account_id = ${account} AND u.target_id = p.id
         CROSS JOIN LATERAL (
           SELECT json_agg(json_build_object('id', g.id, 'level', g."ownLevel", 'tools', g.tools, 'subject', b.name,
                    'grantedBy', d.name, 'createdAt', g.created_at, 'expiresAt', g.expires_at)
                    ORDER BY g."ownLevel" DESC, g.tools IS NULL DESC, g.expires_at DESC, g.id) AS grants
             FROM held g LEFT JOIN accounts b ON b.id = g.subject_id LEFT JOIN accounts d ON d.id = g.created_by
            WHERE g.connection_id = p.id OR g.server_id = p.id OR g.namespace_id = n.id) opened
        ORDER BY ${orderOf(['p.space', 'p.name', 'p.kind'])}`,
      values,
    );
  }

  async count(filter: UsableFilter): Promise<UsableCountsDto> {
    const { tables, values } = this.find(filter);
    const [counts] = await this.database.query<[UsableCountsDto]>(
      `WITH ${tables}
       SELECT (count(*) FILTER (WHERE kind <> 'namespace') + count(DISTINCT id) FILTER (WHERE kind = 'namespace'))::int AS all, ${usableStates.map((state) => `count(*) FILTER (WHERE state = '${state}')::int AS ${state}`).join(', ')} FROM found`,
      values,
    );
    return counts;
  }

  /**
   * Returns the common parts of the query: `held` has the grants of the account; `found` has a row for each connection and server, and one for each namespace and state of its
   * connections with metadata.
   */
  private find({ section, accountId, namespaces, q, owner }: UsableFilter) {
    const values: unknown[] = [];
    const add = (value: unknown) => `$${values.push(value)}`;
    const account = `${add(accountId)}::uuid`;
    const isMine = `n.account_id IN ${accountsOf(account)}`;
    const grantsOf = (table: string, column: string, condition: string) =>
      `t.id IN (SELECT g.${column} FROM held g WHERE g.${column} IS NOT NULL${condition}
                UNION ALL SELECT x.id FROM held g JOIN ${table} x ON x.namespace_id = g.namespace_id${condition && ` WHERE true${condition}`})`;
    const shared: string[] = [];
    if (namespaces) shared.push(`n.name = ANY(${add(namespaces)}::text[])`);
    if (owner !== undefined) shared.push(`${add(owner)} IN (a.id::text, a.name)`);
    const pattern = q === undefined ? null : add(`%${q.replace(/[\\%_]/g, '\\$&')}%`);
    const words = q === undefined ? null : `plainto_tsquery('english', ${add(q)})`;
    const conditions = (table: 'connections' | 'servers') => {
      const isServer = table === 'servers';
      const isGranted = grantsOf(table, isServer ? 'server_id' : 'connection_id', '');
      const opened = { mine: isMine, granted: `${isGranted} AND NOT ${isMine}`, all: `(${isMine} OR ${isGranted})` };
      const all = [opened[section], ...shared];
      if (pattern) {
        const columns = isServer
          ? [`n.name || '/' || t.name`, 't.display_name']
          : [`n.name || '/' || t.connection_id`, 't.name'];
        const matches = [...columns, 'a.name'].map((text) => `${text} ILIKE ${pattern}`);
        matches.push(
          isServer ? `t.search @@ ${words}` : `t.server_id IN (SELECT id FROM servers WHERE search @@ ${words})`,
        );
        all.push(`(${matches.join(' OR ')})`);
      }
      if (isServer) all.push('t.current_type IS NOT NULL');
      return all.join(' AND ');
    };
    const from = (table: string) =>
      `FROM ${table} t JOIN namespaces n ON n.id = t.namespace_id JOIN accounts a ON a.id = n.account_id`;
    const isManager = `(n.account_id = ${account} OR n.account_id IN (SELECT m.organization_id FROM memberships m JOIN accounts o ON o.id = m.organization_id
        WHERE m.account_id = ${account} AND m.role IN ('owner', 'editor') AND o.disabled_at IS NULL) OR ${grantsOf('connections', 'connection_id', ` AND g."ownLevel" = 'manage'`)})`;
    const state = `CASE WHEN coalesce(t.suspended, n.suspended) IS NOT NULL THEN 'broken'
        WHEN t.status_state IN ('auth_required', 'input_required') AND ${isManager} THEN 'needs'
        WHEN t.status_reason = 'never_called' THEN 'unused' WHEN t.status_state = 'connected' THEN 'works' ELSE 'broken' END`;
    const where = conditions('connections');
    const single = `(t.metadata = '{}' OR t.id IN (SELECT connection_id FROM held WHERE connection_id IS NOT NULL))`;
    const tables = `held AS MATERIALIZED ${grantsTo(account)},
       found AS (
         SELECT 'connection' AS kind, t.id, n.id AS namespace_id, n.name AS space, t.connection_id AS name,
                NULL::int AS connections, NULL::int AS logins, ${state} AS state ${from('connections')} WHERE ${where} AND ${single}
         UNION ALL SELECT 'namespace', n.id, n.id, n.name, '', count(*)::int,
                (count(*) FILTER (WHERE t.status_state = 'auth_required'))::int, ${state} AS state
           ${from('connections')} WHERE ${where} AND NOT ${single} GROUP BY n.id, n.name, 8
         UNION ALL SELECT 'server', t.id, n.id, n.name, t.name, NULL, NULL,
                 CASE WHEN coalesce(t.suspended, n.suspended) IS NULL THEN 'works' ELSE 'broken' END
           ${from('servers')} WHERE ${conditions('servers')})`;
    return { tables, account, values, add };
  }
}
