import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager } from 'typeorm';
import { transactionOf, type Actor } from '../../platform/database/actor.js';
import { AccountQuotas } from '../auth/account-quota.decorator.js';
import { PreparedStatement } from '../../platform/database/prepared-statement.js';
import type { GrantRef } from '../auth/access.types.js';
import { visibilities, type Visibility } from '../targets/target.types.js';
import { accountsOf, grantsTo, namespaceGrants, toolsOfAll } from '../auth/memberships.access.js';
import type { Suspension } from '../auth/suspension.types.js';
import { callableByAccount, visibleToAccount } from '../auth/visible-servers.access.js';
import { Vault } from '../../platform/vault/vault.js';
import { NamespaceNotFoundError } from '../namespaces/namespaces.errors.js';
import { Server } from './server.entity.js';
import type { DetailRow } from './server.mapper.js';
import { SecretsNotConfirmedError, ServerNotFoundError } from './servers.errors.js';
import {
  type QualifiedName,
  type RunnableServer,
  type ServerChange,
  type ServerRef,
  type ServerSnapshot,
  type ServerTarget,
  type ServerUse,
} from './server.types.js';

type NewServer = Pick<Server, 'namespaceId' | 'name' | 'displayName' | 'description' | 'slug' | 'visibility'>;

/**
 * Reads nothing that stays hidden from the account, so that its size does not show in the response time. One column of
 * JSON: the driver takes a third less time for it than for ten columns.
 */
const DETAIL = new PreparedStatement<{ detail: DetailRow & ServerTarget }>(
  `SELECT json_build_object(
            'id', s.id, 'namespace', n.name, 'name', s.name, 'displayName', s.display_name, 'description', s.description,
            'slug', s.slug, 'snapshot', s.snapshot, 'scanPassed', s.scan_passed, 'iconUrl', s.icon_url,
            'iconSource', i.source, 'ownerId', n.account_id, 'visibility', s.visibility,
            'suspended', coalesce(s.suspended, n.suspended),
            'lendsSecrets', s.visibility = 'public' AND EXISTS (SELECT FROM server_secrets WHERE server_id = s.id)) AS detail
     FROM servers s JOIN namespaces n ON n.id = s.namespace_id
     LEFT JOIN server_icons i ON i.server_id = s.id AND i.hash IS NOT NULL
    WHERE n.name = $1 AND lower(s.name) = lower($2) AND ${visibleToAccount('s', '$3::uuid')}`,
);

const REF = `s.id, s.namespace_id AS "namespaceId", n.name AS namespace, n.account_id AS "ownerId", s.name, s.slug,
            s.visibility`;

/** Returns the SQL of a runnable server. Snapshots can have megabytes, so it reads only six members. */
const runnableWhere = (condition: string) =>
  new PreparedStatement<RunnableServer & { sealedUrl: string | null }>(
    `SELECT ${REF},
            coalesce(r.log_payloads, false) AS "logPayloads", coalesce(s.suspended, n.suspended) ->> 'reason' AS suspended, l.sealed_upstream_url AS "sealedUrl",
            CASE WHEN s.snapshot IS NULL THEN NULL ELSE jsonb_build_object(
              'releaseId', s.snapshot -> 'releaseId', 'type', s.snapshot -> 'type',
              'upstreamUrl', s.snapshot -> 'upstreamUrl', 'hosted', s.snapshot -> 'hosted',
              'configSchema', s.snapshot -> 'configSchema', 'configOrder', s.snapshot -> 'configOrder') END AS current
       FROM servers s JOIN namespaces n ON n.id = s.namespace_id
       LEFT JOIN server_runtime r ON r.server_id = s.id
       LEFT JOIN releases l ON l.id = s.current_release_id WHERE ${condition}`,
  );
const RUNNABLE_BY_SLUG = runnableWhere('lower(s.slug) = lower($1)');
const RUNNABLE_BY_ID = runnableWhere('s.id = $1');

/** Grants of a server, including the right of an organization's members to call: a connection calls without the roles of its account. */
const GRANT = new PreparedStatement<GrantRef>(
  `SELECT g.id, g."ownLevel" AS level, g.tools FROM ${grantsTo('$2::uuid')} g
    WHERE g.server_id = $1 OR g.namespace_id = (SELECT namespace_id FROM servers WHERE id = $1)
   UNION ALL SELECT NULL, 'call', NULL FROM servers s JOIN namespaces n ON n.id = s.namespace_id
    WHERE s.id = $1 AND n.account_id IN ${accountsOf('$2::uuid')} ORDER BY level DESC, tools DESC NULLS FIRST, id NULLS FIRST`,
);

@AccountQuotas({
  counts: {
    servers: `SELECT count(*) FROM namespaces n JOIN servers t ON t.namespace_id = n.id WHERE n.account_id = a.id`,
    serversPerNamespace: 'SELECT count(*) FROM servers WHERE namespace_id = $1',
  },
})
@Injectable()
export class ServersRepository {
  constructor(
    @InjectDataSource() private readonly database: DataSource,
    private readonly vault: Vault,
  ) {}

  /** @returns false when the name or slug is taken @throws QueryFailedError (23503) without its namespace */
  async insertIfFree(actor: Actor, server: NewServer): Promise<boolean> {
    const inserted = await transactionOf(this.database, actor, (tx) =>
      tx.createQueryBuilder().insert().into(Server).values(server).orIgnore().returning('id').execute(),
    );
    return (inserted.raw as unknown[]).length > 0;
  }

  /**
   * Finds a server. The part of a qualified name after the slash can be in any case.
   *
   * @param accountId leaves out servers that this account cannot find; null: finds all
   */
  async find(by: QualifiedName | { slug: string }, accountId: string | null): Promise<ServerRef | null> {
    const [condition, values] =
      'slug' in by
        ? ['lower(s.slug) = lower($2)', [by.slug]]
        : ['n.name = $2 AND lower(s.name) = lower($3)', [by.namespace, by.name]];
    const [row] = await this.database.query<ServerRef[]>(
      `SELECT ${REF} FROM servers s JOIN namespaces n ON n.id = s.namespace_id
        WHERE ${condition} AND ($1::uuid IS NULL OR ${visibleToAccount('s', '$1::uuid')})`,
      [accountId, ...values],
    );
    return row ?? null;
  }

  /** Returns at most 1,000 names; null without the namespace. */
  async namesIn(namespace: string): Promise<{ ownerId: string; names: string[] } | null> {
    const rows = await this.database.query<{ ownerId: string; name: string | null }[]>(
      `SELECT n.account_id AS "ownerId", s.name FROM namespaces n LEFT JOIN servers s ON s.namespace_id = n.id
        WHERE n.name = $1 LIMIT 1000`,
      [namespace],
    );
    const [first] = rows;
    return first ? { ownerId: first.ownerId, names: rows.flatMap(({ name }) => name ?? []) } : null;
  }

  /** Merges all grants under the id of the strongest; null without a grant. */
  async findGrant(id: string, accountId: string): Promise<GrantRef | null> {
    const rows = await GRANT.run(this.database, [id, accountId]);
    return rows[0] ? { ...rows[0], tools: toolsOfAll(rows) } : null;
  }

  async closedAmong(ids: string[]): Promise<string[]> {
    const rows = await this.database.query<{ id: string }[]>(
      `SELECT s.id FROM servers s JOIN namespaces n ON n.id = s.namespace_id
        WHERE s.id = ANY($1::uuid[]) AND (s.visibility <> 'public' OR coalesce(s.suspended, n.suspended) IS NOT NULL)`,
      [ids],
    );
    return rows.map(({ id }) => id);
  }

  /** Returns uses whose account cannot call the server. */
  lostAmong(uses: ServerUse[]): Promise<ServerUse[]> {
    return this.database.query<ServerUse[]>(
      `SELECT u.server AS "serverId", u.account AS "accountId" FROM unnest($1::uuid[], $2::uuid[]) u(server, account)
         JOIN servers s ON s.id = u.server JOIN namespaces n ON n.id = s.namespace_id
        WHERE coalesce(s.suspended, n.suspended) IS NOT NULL OR NOT ${callableByAccount('s', 'u.account')}`,
      [uses.map(({ serverId }) => serverId), uses.map(({ accountId }) => accountId)],
    );
  }

  /** Returns true if a namespace of another owner is granted to an account that cannot call the server. */
  async isSharedBy(id: string, namespaceId: string): Promise<boolean> {
    const rows = await this.database.query<unknown[]>(
      `SELECT FROM servers s JOIN namespaces o ON o.id = s.namespace_id JOIN namespaces n ON n.id = $2
         JOIN ${namespaceGrants} given ON given.namespace_id = n.id
        WHERE s.id = $1 AND o.account_id <> n.account_id
          AND ${callableByAccount('s', 'given.subject_id')} IS NOT TRUE LIMIT 1`,
      [id, namespaceId],
    );
    return rows.length > 0;
  }

  /** Returns the public record of a server; null if the account cannot find one. */
  async findDetail({ namespace, name }: QualifiedName, accountId: string): Promise<(DetailRow & ServerTarget) | null> {
    return (await DETAIL.findOne(this.database, [namespace, name, accountId]))?.detail ?? null;
  }

  async findRunnable(by: { slug: string } | { id: string }): Promise<RunnableServer | null> {
    const row =
      'slug' in by
        ? await RUNNABLE_BY_SLUG.findOne(this.database, [by.slug])
        : await RUNNABLE_BY_ID.findOne(this.database, [by.id]);
    if (!row) return null;
    const { sealedUrl, ...server } = row;
    if (!server.current || sealedUrl === null) return server;
    const upstreamUrl = this.vault.open(sealedUrl, server.current.releaseId);
    return { ...server, current: { ...server.current, upstreamUrl } };
  }

  async findPresentation(
    id: string,
  ): Promise<(QualifiedName & Pick<Server, 'displayName' | 'description'> & { hasIcon: boolean }) | null> {
    const [row] = await this.database.query<Awaited<ReturnType<ServersRepository['findPresentation']>>[]>(
      `SELECT n.name AS namespace, s.name, s.display_name AS "displayName", s.description, i.hash IS NOT NULL AS "hasIcon"
         FROM servers s JOIN namespaces n ON n.id = s.namespace_id LEFT JOIN server_icons i ON i.server_id = s.id
        WHERE s.id = $1`,
      [id],
    );
    return row ?? null;
  }

  /** @throws NamespaceNotFoundError */
  async ownerOf(namespaceId: string): Promise<string> {
    const [row] = await this.database.query<{ ownerId: string }[]>(
      'SELECT account_id AS "ownerId" FROM namespaces WHERE id = $1',
      [namespaceId],
    );
    if (!row) throw new NamespaceNotFoundError();
    return row.ownerId;
  }

  /**
   * @param requireOpener throws if the caller cannot open the server: called under the lock of the row, before the
   * server becomes more visible and for a confirmation
   * @param confirmsSecrets that every caller uses the server's secrets
   * @throws SecretsNotConfirmedError for a server with secrets that would become public unconfirmed;
   * ServerNotFoundError; what `requireOpener` throws
   */
  async setVisibility(
    tx: EntityManager,
    id: string,
    visibility: Visibility,
    requireOpener: (server: Pick<ServerTarget, 'ownerId' | 'namespace'>) => void,
    confirmsSecrets = false,
  ): Promise<void> {
    const [row] = await tx.query<{ visibility: Visibility; ownerId: string; namespace: string; hasSecrets: boolean }[]>(
      `SELECT s.visibility, n.account_id AS "ownerId", n.name AS namespace,
              EXISTS (SELECT FROM server_secrets WHERE server_id = s.id) AS "hasSecrets"
         FROM servers s JOIN namespaces n ON n.id = s.namespace_id WHERE s.id = $1 FOR NO KEY UPDATE OF s`,
      [id],
    );
    if (!row) throw new ServerNotFoundError();
    const isOpening = visibilities.indexOf(visibility) < visibilities.indexOf(row.visibility);
    if (isOpening || confirmsSecrets) requireOpener(row);
    if (visibility === 'public' && isOpening && row.hasSecrets && !confirmsSecrets)
      throw new SecretsNotConfirmedError();
    await tx.query(
      `UPDATE servers SET visibility = $2, confirm_secrets = $2 = 'public' AND (confirm_secrets OR $3) WHERE id = $1`,
      [id, visibility, confirmsSecrets],
    );
  }

  /** @returns null if the server does not exist */
  async suspend(
    actor: Actor,
    { namespace, name }: QualifiedName,
    suspended: Suspension | null,
  ): Promise<ServerChange | null> {
    const sql = `UPDATE servers s SET suspended = $3::jsonb FROM namespaces n
      WHERE n.id = s.namespace_id AND n.name = $1 AND lower(s.name) = lower($2) RETURNING s.id, s.slug`;
    const values = [namespace, name, suspended && JSON.stringify(suspended)];
    const [[row]] = await transactionOf(this.database, actor, (tx) => tx.query<[ServerChange[]]>(sql, values));
    return row ?? null;
  }

  async setCurrent(id: string, snapshot: ServerSnapshot, tx: EntityManager): Promise<void> {
    await tx.query(
      `UPDATE servers SET current_release_id = $2, current_type = $3, snapshot = $4::jsonb WHERE id = $1`,
      [id, snapshot.releaseId, snapshot.type, JSON.stringify(snapshot)],
    );
  }

  /** Locks rows in the order of their ids, so that processes cannot deadlock. */
  async addUses(uses: Map<string, number>): Promise<void> {
    const rows = [...uses].toSorted(([a], [b]) => (a < b ? -1 : 1));
    await this.database.query(
      `WITH used AS (
         SELECT s.id, s.use_count + u.uses AS total FROM servers s
           JOIN unnest($1::uuid[], $2::bigint[]) AS u(id, uses) ON u.id = s.id
          ORDER BY s.id FOR UPDATE OF s)
       UPDATE servers s SET use_count = used.total, popularity = floor(4 * log(2, used.total + 1))
         FROM used WHERE s.id = used.id`,
      [rows.map(([id]) => id), rows.map(([, count]) => count)],
    );
  }
}
