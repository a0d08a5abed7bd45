import { transactionOf, type Actor } from '../../../platform/database/actor.js';
import type { Suspension } from '../../auth/suspension.types.js';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import {
  Repository,
  type EntityManager,
  type FindOptionsWhere,
  type SelectQueryBuilder,
  type QueryDeepPartialEntity,
} from 'typeorm';
import { AccountQuotas } from '../../auth/account-quota.decorator.js';
import { PreparedStatement } from '../../../platform/database/prepared-statement.js';
import { LogNamesRepository } from '../../../platform/telemetry/log-names.repository.js';
import { visibleToAccount } from '../../auth/visible-servers.access.js';
import type { OwnedNamespace } from '../../auth/access.types.js';
import { neverCalled, type ConnectionState } from './connection-status.js';
import { Connection } from './connection.entity.js';
import { ResourceNotFoundError } from './connections.errors.js';
import { jsonValuesOf, type MetadataFilter } from './metadata-filter.js';

/** The columns of a response, none of them sealed. */
export const shownColumns = [
  'id',
  'connectionId',
  'name',
  'targetKind',
  'mcpUrl',
  'metadata',
  'tools',
  'callTimeoutMs',
  'oauth',
  'mock',
  'setupEpoch',
  'statusState',
  'statusReason',
  'statusMessage',
  'statusInputs',
  'statusSince',
  'lastOkAt',
  'serverInfo',
  'createdAt',
] as const satisfies (keyof Connection)[];

/** `slug` is that of the registry server; null for other targets. `suspended` includes that of the namespace. */
export type ShownConnection = Pick<Connection, (typeof shownColumns)[number] | 'suspended'> & { slug: string | null };

/** The columns of a target, some of them sealed, and the owner of the connection. */
export type TargetRow = {
  namespace: string;
  accountId: string;
  ownerName: string;
  /** The operator's reason, for the connection or its namespace; null while in use. */
  suspended: string | null;
} & Pick<
  Connection,
  | 'id'
  | 'revision'
  | 'namespaceId'
  | 'connectionId'
  | 'setupEpoch'
  | 'targetKind'
  | 'isStateful'
  | 'mcpUrl'
  | 'serverId'
  | 'serverName'
  | 'mock'
  | 'sealedUrl'
  | 'sealedHeaders'
  | 'sealedQuery'
  | 'recordingUntil'
  | 'tools'
  | 'callTimeoutMs'
>;

const targetWhere = (condition: string) =>
  new PreparedStatement<TargetRow>(
    `SELECT c.id, c.revision, c.namespace_id AS "namespaceId", n.name AS namespace, n.account_id AS "accountId",
            a.name AS "ownerName", c.connection_id AS "connectionId", c.setup_epoch AS "setupEpoch", c.target_kind AS "targetKind",
            c.is_stateful AS "isStateful", c.mcp_url AS "mcpUrl", c.server_id AS "serverId", c.server_name AS "serverName",
            c.mock, c.sealed_url AS "sealedUrl", c.sealed_headers AS "sealedHeaders", c.sealed_query AS "sealedQuery",
            c.recording_until AS "recordingUntil", c.tools, c.call_timeout_ms AS "callTimeoutMs",
            coalesce(c.suspended, n.suspended) ->> 'reason' AS suspended
       FROM connections c JOIN namespaces n ON n.id = c.namespace_id JOIN accounts a ON a.id = n.account_id
      WHERE ${condition}`,
  );
const TARGET_BY_ID = targetWhere('c.id = $1');
const TARGET_BY_NAME = targetWhere('c.namespace_id = $1 AND c.connection_id = $2');

/** Filters of connections, all of which must match. */
export interface ConnectionFilter {
  /** Only connections created before the one with this `seq`. */
  beforeSeq?: string;
  name?: string;
  /** An exact URL; its hashes if it has a query. */
  mcpUrl?: string | { hashes: string[] };
  serverId?: string;
  state?: ConnectionState;
  metadata: MetadataFilter[];
}

export type ConnectionRow = Pick<Connection, 'id' | 'recordingUntil'>;

export type DeletedConnection = Pick<Connection, 'id' | 'namespaceId' | 'connectionId' | 'targetKind'>;

export type ByIds = { id: string } | { namespaceId: string; connectionId: string };

const OWNER = '(SELECT own.account_id FROM namespaces own WHERE own.id = connection.namespace_id)';

/** The first recheck of a connection whose first check did not finish. */
export const FIRST_CHECK = "now() + interval '1 minute'";

/** Maximum number of connection ids that a misspelt one is compared with. */
const NAMES_MAX = 1_000;

/** A changed connection; a null revision means that it was deleted. */
export type ChangedConnection = Pick<Connection, 'id' | 'namespaceId' | 'connectionId'> & { revision: number | null };

@AccountQuotas({
  counts: {
    connections: `SELECT count(*) FROM namespaces n JOIN connections t ON t.namespace_id = n.id WHERE n.account_id = a.id`,
    connectionsPerNamespace: 'SELECT count(*) FROM connections WHERE namespace_id = $1',
  },
})
@Injectable()
export class ConnectionsRepository {
  private readonly shownById = this.shownWhere('connection.id = :id', { id: '' });
  private readonly shownByName = this.shownWhere(
    'connection.namespaceId = :namespaceId AND connection.connectionId = :connectionId',
    { namespaceId: '', connectionId: '' },
  );

  constructor(@InjectRepository(Connection) private readonly connectionRepository: Repository<Connection>) {}

  findTarget(where: ByIds): Promise<TargetRow | null> {
    const { dataSource } = this.connectionRepository.manager;
    return 'id' in where
      ? TARGET_BY_ID.findOne(dataSource, [where.id])
      : TARGET_BY_NAME.findOne(dataSource, [where.namespaceId, where.connectionId]);
  }

  findShown(where: ByIds): Promise<ShownConnection | null> {
    const { dataSource } = this.connectionRepository.manager;
    return 'id' in where
      ? this.shownById.findOne(dataSource, [where.id])
      : this.shownByName.findOne(dataSource, [where.namespaceId, where.connectionId]);
  }

  async ownerName(namespaceId: string): Promise<string> {
    const [row] = await this.connectionRepository.query<{ name: string }[]>(
      'SELECT a.name FROM namespaces n JOIN accounts a ON a.id = n.account_id WHERE n.id = $1',
      [namespaceId],
    );
    return row?.name ?? '';
  }

  /** Lists rows, newest first, by an index at any depth of the list. */
  listShown(
    namespaceId: string,
    limit: number,
    { beforeSeq, name, mcpUrl, serverId, state, metadata }: ConnectionFilter,
  ): Promise<(ShownConnection & { seq: string })[]> {
    const rows = this.selectShown()
      .addSelect('connection.seq', 'seq')
      .where('connection.namespaceId = :namespaceId', { namespaceId })
      .orderBy('connection.seq', 'DESC')
      .limit(limit);
    if (beforeSeq !== undefined) rows.andWhere('connection.seq < :seq', { seq: beforeSeq });
    if (name !== undefined) rows.andWhere('connection.name = :name', { name });
    if (typeof mcpUrl === 'string') rows.andWhere('connection.mcpUrl = :mcpUrl', { mcpUrl });
    else if (mcpUrl !== undefined) rows.andWhere('connection.mcpUrlHash IN (:...hashes)', mcpUrl);
    if (serverId !== undefined) rows.andWhere('connection.serverId = :serverId', { serverId });
    if (state !== undefined) rows.andWhere('connection.statusState = :state', { state });
    // Filters that can only mean a string are one containment test: the planner estimates it better than several (1,000,000
    // rows, two common values that never meet: 6 ms instead of 220).
    const plain = metadata.filter((filter) => jsonValuesOf(filter).length === 1);
    if (plain.length > 0) {
      const object = Object.fromEntries(plain.map(({ key, value }) => [key, value]));
      rows.andWhere('connection.metadata @> :plain::jsonb', { plain: JSON.stringify(object) });
    }
    metadata.filter((filter) => !plain.includes(filter)).forEach((filter, i) => addMetadataFilter(rows, filter, i));
    return rows.getRawMany<ShownConnection & { seq: string }>();
  }

  /** Returns the error for a missing connection, with the most similar connection id. */
  async missing({ id: namespaceId, name }: OwnedNamespace, connectionId: string): Promise<ResourceNotFoundError> {
    const select = { connectionId: true };
    const where = { namespaceId };
    const rows = await this.connectionRepository.find({ where, select, order: { seq: 'DESC' }, take: NAMES_MAX });
    const ids = rows.map((row) => row.connectionId);
    return ResourceNotFoundError.ofConnection(name, connectionId, ids);
  }

  logNames(id: string): Promise<object> {
    return LogNamesRepository.find(this.connectionRepository.manager, 'connection', id);
  }

  findRow(where: FindOptionsWhere<Connection>): Promise<ConnectionRow | null> {
    return this.connectionRepository.findOne({ where, select: { id: true, recordingUntil: true } });
  }

  /** Finds a connection with `source` and the sealed URL, which other queries leave out. */
  findWithSource(where: ByIds): Promise<Connection | null> {
    return this.connectionRepository
      .createQueryBuilder('connection')
      .addSelect(['connection.source', 'connection.sealedUrl'])
      .where(where)
      .getOne();
  }

  /** Finds a connection with its namespace, sealed values and challenges. */
  findForSetup(id: string): Promise<Connection | null> {
    return this.connectionRepository
      .createQueryBuilder('connection')
      .innerJoinAndSelect('connection.namespace', 'namespace')
      .addSelect([
        'connection.sealedUrl',
        'connection.sealedHeaders',
        'connection.sealedQuery',
        'connection.sealedOauthSecret',
        'connection.statusChallenges',
      ])
      .where('connection.id = :id', { id })
      .getOne();
  }

  /** Returns connections of a namespace that have tokens to revoke, at most 1,000. */
  async idsWithTokens(namespaceId: string): Promise<string[]> {
    // Names the table of modules/oauth in SQL: entities of other modules cannot be imported.
    const rows = await this.connectionRepository.query<{ id: string }[]>(
      `SELECT c.id FROM connections c JOIN upstream_credentials u ON u.owner_kind = 'connection' AND u.owner_id = c.id
        WHERE c.namespace_id = $1 AND u.state = 'active' LIMIT 1000`,
      [namespaceId],
    );
    return rows.map(({ id }) => id);
  }

  /**
   * Revokes setup links, pending authorizations, and OAuth access to everything in these namespaces that is not public.
   */
  async endLogins(namespaceIds: string[], tx: EntityManager): Promise<void> {
    await tx.query(
      `UPDATE connections SET setup_epoch = setup_epoch + 1, revision = revision + 1 WHERE id IN (
         SELECT id FROM connections WHERE namespace_id = ANY($1::uuid[]) ORDER BY id FOR UPDATE)`,
      [namespaceIds],
    );
    await tx.query(
      `UPDATE pending_authorizations SET completed_at = now(), state_hash = NULL, sealed_verifier = NULL WHERE id IN (
         SELECT id FROM pending_authorizations WHERE completed_at IS NULL AND owner_id IN (
           SELECT id FROM connections WHERE namespace_id = ANY($1::uuid[])
           UNION ALL SELECT id FROM servers WHERE namespace_id = ANY($1::uuid[])) ORDER BY id FOR UPDATE)`,
      [namespaceIds],
    );
    await tx.query(
      `DELETE FROM as_grants g WHERE g.right_id IS NULL AND (
         g.namespace_id = ANY($1::uuid[])
         OR g.connection_id IN (SELECT id FROM connections WHERE namespace_id = ANY($1::uuid[]))
         OR g.server_id IN (SELECT id FROM servers WHERE namespace_id = ANY($1::uuid[]) AND visibility <> 'public'))`,
      [namespaceIds],
    );
  }

  /** @returns false if the namespace has a connection of this id */
  async insert(row: QueryDeepPartialEntity<Connection>, tx: EntityManager): Promise<boolean> {
    const createdAt = () => 'clock_timestamp()';
    const insert = tx
      .createQueryBuilder()
      .insert()
      .into(Connection)
      .values({ ...row, createdAt })
      .orIgnore()
      .returning('id');
    const { raw } = (await insert.execute()) as { raw: unknown[] };
    return raw.length > 0;
  }

  /** Reads the members that a PUT can change, and locks the row; null if it was deleted. */
  lock(id: string, tx: EntityManager): Promise<Connection | null> {
    return tx
      .createQueryBuilder(Connection, 'connection')
      .addSelect(['sealedUrl', 'sealedHeaders', 'sealedQuery', 'sealedOauthSecret'].map((name) => `connection.${name}`))
      .where({ id })
      .setLock('pessimistic_write')
      .getOne();
  }

  /**
   * Changes a connection and increments its revision, so that no process uses an older channel. Observations of earlier
   * revisions are ignored.
   *
   * @param options `endLinks` revokes the setup links; `setupEpoch` changes the row only at this epoch
   * @returns false if there is no such row
   */
  async update(
    id: string,
    change: QueryDeepPartialEntity<Connection>,
    options: { endLinks: boolean; setupEpoch?: number },
    tx: EntityManager = this.connectionRepository.manager,
  ): Promise<boolean> {
    const { endLinks, setupEpoch } = options;
    const { affected } = await tx
      .createQueryBuilder()
      .update(Connection)
      .set({
        ...change,
        ...(endLinks && { setupEpoch: () => 'setup_epoch + 1' }),
        revision: () => 'revision + 1',
        statusSeenAt: null,
        checkFailures: 0,
      })
      .where({ id, ...(setupEpoch !== undefined && { setupEpoch }) })
      .execute();
    return affected === 1;
  }

  /**
   * Returns columns that depend on the address and that no PUT sends, reset to those of a new connection. Deletes the
   * recorded calls.
   */
  async forgetAddress(id: string, tx: EntityManager): Promise<QueryDeepPartialEntity<Connection>> {
    await tx.query('DELETE FROM recorded_calls WHERE connection_id = $1', [id]);
    const { state: statusState, reason: statusReason, message: statusMessage } = neverCalled;
    return {
      ...{ statusState, statusReason, statusMessage, statusInputs: null, statusSince: () => 'now()' },
      ...{ statusChallenges: null, stepUps: [], serverInfo: null, recordingUntil: null },
      nextCheckAt: () => FIRST_CHECK,
    };
  }

  /** Suspends or reinstates a connection, with a new revision. @returns null if it does not exist */
  async suspend(
    actor: Actor,
    namespace: string,
    connectionId: string,
    suspended: Suspension | null,
  ): Promise<ChangedConnection | null> {
    const sql = `UPDATE connections c SET suspended = $3::jsonb, revision = c.revision + 1 FROM namespaces n
      WHERE n.id = c.namespace_id AND n.name = $1 AND c.connection_id = $2
     RETURNING c.id, c.namespace_id AS "namespaceId", c.connection_id AS "connectionId", c.revision`;
    const values = [namespace, connectionId, suspended && JSON.stringify(suspended)];
    const [[row]] = await transactionOf(this.connectionRepository, actor, (tx) =>
      tx.query<[ChangedConnection[]]>(sql, values),
    );
    return row ?? null;
  }

  /** @returns null if it does not exist */
  async delete(actor: Actor, id: string): Promise<DeletedConnection | null> {
    const sql = `DELETE FROM connections WHERE id = $1
      RETURNING id, namespace_id AS "namespaceId", connection_id AS "connectionId", target_kind AS "targetKind"`;
    const [[deleted]] = await transactionOf(this.connectionRepository, actor, (tx) =>
      tx.query<[DeletedConnection[]]>(sql, [id]),
    );
    return deleted ?? null;
  }

  /** Selects raw rows: creating a hundred entities takes longer than the query. */
  private selectShown(): SelectQueryBuilder<Connection> {
    const rows = this.connectionRepository
      .createQueryBuilder('connection')
      .leftJoin('connection.server', 'server')
      // If the owner of the connection cannot find the server, its slug is hidden, as that of a deleted one.
      .select(`CASE WHEN ${visibleToAccount('server', OWNER)} THEN server.slug END`, 'slug')
      .addSelect(
        'coalesce(connection.suspended, (SELECT n.suspended FROM namespaces n WHERE n.id = connection.namespace_id))',
        'suspended',
      );
    for (const column of shownColumns) rows.addSelect(`connection.${column}`, column);
    return rows;
  }

  /** Returns a prepared statement: TypeORM takes longer to build the statement than Postgres to run it. */
  private shownWhere(condition: string, parameters: Record<string, string>): PreparedStatement<ShownConnection> {
    return new PreparedStatement(this.selectShown().where(condition, parameters).getQueryAndParameters()[0]);
  }
}

/**
 * Adds a filter that can mean a string or another JSON value. Containment matches too much for objects and arrays
 * (`{"a": 1}` finds `{"a": 1, "b": 2}`), so these are compared as well. For other values containment is equality, and a
 * second test would mislead the planner (40 to 220 ms instead of 2).
 */
function addMetadataFilter(rows: SelectQueryBuilder<Connection>, filter: MetadataFilter, i: number): void {
  const tests = jsonValuesOf(filter).map((value, j) => {
    rows.setParameter(`o${i}_${j}`, JSON.stringify(Object.fromEntries([[filter.key, value]])));
    const contains = `connection.metadata @> :o${i}_${j}::jsonb`;
    if (typeof value !== 'object' || value === null) return contains;
    rows.setParameters({ [`k${i}`]: filter.key, [`v${i}_${j}`]: JSON.stringify(value) });
    return `${contains} AND connection.metadata -> :k${i}::text = :v${i}_${j}::jsonb`;
  });
  rows.andWhere(`(${tests.join(' OR ')})`);
}
