import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource } from 'typeorm';
import type { ServerInfo } from '../../../mcp/protocol/protocol.js';
import type { GrantLevel, Role } from '../../auth/access.types.js';
import { accountsOf, grantsTo } from '../../auth/memberships.access.js';
import type { IconOrigin } from '../../servers/server-urls.service.js';
import type { LastUseRow } from '../grant.types.js';
import type { UsableKind, UsableSection } from './usable.dto.js';

/** Filters of a section; every one must match. */
export interface UsableFilter {
  section: UsableSection;
  accountId: string;
  /** Only in these namespaces, but for public servers; null: in all. */
  namespaces: string[] | null;
  q?: string;
  /** Id or name of the account that owns it; of public servers the id alone. */
  owner?: string;
  /** Only connections that wait for a person. */
  needsPerson: boolean;
  /** Key of the row before the first one. */
  after?: string;
  limit: number;
}

/** A grant that opens a row. Times are ISO 8601. */
export interface UsableGrant {
  id: string;
  level: GrantLevel;
  tools: string[] | null;
  /** Name of the account or organization that has it; null for everybody. */
  subject: string | null;
  /** Name of the account that granted it; null after its deletion. */
  grantedBy: string | null;
  createdAt: string;
  expiresAt: string | null;
}

/** A connection, a server, or the connections with metadata of a namespace. */
export interface UsableRow extends IconOrigin, LastUseRow {
  /** Order and cursor. */
  key: string;
  kind: UsableKind;
  namespace: string;
  /** The part behind the slash of its address; '' without one. */
  name: string;
  title: string | null;
  ownerId: string;
  ownerName: string;
  /** The caller's account owns it. */
  isOwn: boolean;
  /** Of the caller in the organization that owns it; null without one. */
  role: Role | null;
  /** The strongest first; null without any. */
  grants: UsableGrant[] | null;
  /** Only of `namespace`. */
  connections: number | null;
  /** Everybody may call it. */
  isPublic: boolean;
  isSuspended: boolean;
  state: string | null;
  reason: string | null;
  since: Date | null;
  /** Of a connection: for its setup page. */
  id: string | null;
  setupEpoch: number | null;
  serverInfo: ServerInfo | null;
}

/** SQL of what an account may use. */
@Injectable()
export class UsableRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /** Rows of a section by their keys. One statement: the page is chosen by names, and its other columns are read after. */
  list(filter: UsableFilter): Promise<UsableRow[]> {
    const { section, namespaces, q, owner, needsPerson, after, limit } = filter;
    const values: unknown[] = [];
    const add = (value: unknown) => `$${values.push(value)}`;
    const account = `${add(filter.accountId)}::uuid`;
    const isMine = `n.account_id IN ${accountsOf(account)}`;
    const granted = (table: string, column: string) =>
      `t.id IN (SELECT g.${column} FROM held g WHERE g.${column} IS NOT NULL
                UNION ALL SELECT x.id FROM held g JOIN ${table} x ON x.namespace_id = g.namespace_id)`;
    const pattern = q === undefined || section === 'public' ? null : add(`%${q.replace(/[\\%_]/g, '\\$&')}%`);
    const conditions = (table: 'connections' | 'servers', id: string, name: string) => {
      const isGranted = granted(table, table === 'servers' ? 'server_id' : 'connection_id');
      const all = {
        mine: [isMine],
        granted: [isGranted, `NOT ${isMine}`],
        public: [`t.visibility = 'public' AND NOT t.unlisted`, `NOT ${isMine}`, `NOT ${isGranted}`],
      }[section];
      if (section === 'public') {
        // By the trigrams of its names, which have letters and digits only.
        const words = q?.toLowerCase().replace(/[^\p{L}\p{M}\p{N}]+/gu, '%');
        all.push(`t.search_words LIKE ${add(`%${words}%`)}`);
        if (owner !== undefined) all.push(`a.id::text = ${add(owner)}`);
      } else {
        if (namespaces) all.push(`n.name = ANY(${add(namespaces)}::text[])`);
        if (owner !== undefined) all.push(`${add(owner)} IN (a.id::text, a.name)`);
        if (pattern) {
          const matches = [`n.name || '/' || ${id}`, name, 'a.name'].map((text) => `${text} ILIKE ${pattern}`);
          all.push(`(${matches.join(' OR ')})`);
        }
      }
      if (table === 'servers') all.push('t.current_type IS NOT NULL');
      else if (needsPerson) all.push(`t.status_state IN ('auth_required', 'input_required')`);
      return all.join(' AND ');
    };
    const from = (table: string) =>
      `FROM ${table} t JOIN namespaces n ON n.id = t.namespace_id JOIN accounts a ON a.id = n.account_id`;
    const parts: string[] = [];
    if (section !== 'public') {
      const where = conditions('connections', 't.connection_id', 't.name');
      const single = `(t.metadata = '{}' OR t.id IN (SELECT connection_id FROM held WHERE connection_id IS NOT NULL))`;
      parts.push(
        `SELECT 'connection' AS kind, t.id, n.id AS namespace_id, n.name || '/' || t.connection_id || ' connection' AS key,
                NULL::int AS connections ${from('connections')} WHERE ${where} AND ${single}`,
        `SELECT 'namespace', n.id, n.id, n.name || ' namespace', count(*)::int
           ${from('connections')} WHERE ${where} AND NOT ${single} GROUP BY n.id`,
      );
    }
    if (!needsPerson) {
      parts.push(
        `SELECT 'server' AS kind, t.id, n.id AS namespace_id,
                CASE t.name WHEN '' THEN n.name ELSE n.name || '/' || t.name END || ' server' AS key, NULL::int AS connections
           ${from('servers')} WHERE ${conditions('servers', 't.name', 't.display_name')}`,
      );
    }
    if (parts.length === 0) return Promise.resolve([]);
    return this.database.query<UsableRow[]>(
      `WITH held AS MATERIALIZED ${grantsTo(account)},
       page AS MATERIALIZED (
         SELECT * FROM (${parts.join(' UNION ALL ')}) found
          ${after === undefined ? '' : `WHERE key COLLATE "C" > ${add(after)}`} ORDER BY key COLLATE "C" LIMIT ${add(limit)})
       SELECT p.key, p.kind, p.connections, n.name AS namespace, coalesce(c.connection_id, s.name, '') AS name,
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
        ORDER BY p.key COLLATE "C"`,
      values,
    );
  }
}
