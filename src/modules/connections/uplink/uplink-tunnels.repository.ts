import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import type { ServerInfo } from '../../../mcp/protocol/protocol.js';
import { isForeignKeyViolation } from '../../../platform/database/postgres-errors.js';
import { ownerLives } from '../../../platform/processes/processes.repository.js';
import { LogNamesRepository, type LogNames } from '../../../platform/telemetry/log-names.repository.js';
import type { ConnectionStatus } from '../core/connection-status.js';
import type { ChangedConnection } from '../core/connection.repository.js';
import { ResourceNotFoundError } from '../core/connections.errors.js';
import { STATUS_COLUMNS } from '../core/status.repository.js';

export interface TunnelName {
  connectionId: string;
  tunnel: string;
}

export interface TunnelOwner {
  tunnel: string;
  processId: string;
  /** Null for a process without an internal address. */
  url: string | null;
}

export interface TunnelClaim {
  /** True while the epoch of the claiming process is valid. */
  isCurrent: boolean;
  /** The number of the new tunnel; null if another one is open, or the epoch is not valid. */
  tunnel: string | null;
}

/** Rows of tunnels. Every statement names its tunnel, so that a replaced tunnel changes neither the row nor the status of the connection. */
@Injectable()
export class UplinkTunnelsRepository {
  constructor(private readonly database: DataSource) {}

  async adopt(processId: string, epoch: string, tx: EntityManager): Promise<void> {
    await tx.query('UPDATE uplink_tunnels SET epoch = $2 WHERE process_id = $1', [processId, epoch]);
  }

  async heldBy(processId: string): Promise<Set<string>> {
    const rows = await this.database.query<{ tunnel: string }[]>(
      'SELECT tunnel FROM uplink_tunnels WHERE process_id = $1',
      [processId],
    );
    return new Set(rows.map(({ tunnel }) => tunnel));
  }

  /**
   * @param ended tunnels that are closed although their rows still exist
   * @throws ResourceNotFoundError if the connection was deleted
   */
  async claim(
    connectionId: string,
    process: { id: string; epoch: string },
    force: boolean,
    ended: TunnelName[],
  ): Promise<TunnelClaim> {
    try {
      const [row] = await this.database.query<[TunnelClaim]>(
        `WITH own AS (SELECT id, epoch FROM processes WHERE id = $2 AND epoch = $3 AND lease_until > now()),
              claimed AS (
                INSERT INTO uplink_tunnels AS held (connection_id, process_id, epoch) SELECT $1, id, epoch FROM own
                ON CONFLICT (connection_id) DO UPDATE
                   SET process_id = EXCLUDED.process_id, epoch = EXCLUDED.epoch, tunnel = DEFAULT, created_at = now()
                 WHERE $4 OR held.tunnel = ANY($5::bigint[]) OR NOT ${ownerLives('held')}
                RETURNING tunnel)
         SELECT EXISTS (SELECT 1 FROM own) AS "isCurrent", (SELECT tunnel FROM claimed) AS tunnel`,
        [connectionId, process.id, process.epoch, force, ended.map(({ tunnel }) => tunnel)],
      );
      return row;
    } catch (error) {
      throw isForeignKeyViolation(error) ? new ResourceNotFoundError() : error;
    }
  }

  namesOf({ connectionId }: TunnelName): Promise<LogNames> {
    return LogNamesRepository.find(this.database, 'connection', connectionId);
  }

  async owner(connectionId: string): Promise<TunnelOwner | null> {
    const [row] = await this.database.query<TunnelOwner[]>(
      `SELECT t.tunnel, t.process_id AS "processId", p.address AS url
         FROM uplink_tunnels t JOIN processes p ON p.id = t.process_id AND p.epoch = t.epoch
        WHERE t.connection_id = $1 AND p.lease_until > now()`,
      [connectionId],
    );
    return row ?? null;
  }

  async hasConnection(connectionId: string): Promise<boolean> {
    return (await this.database.query<unknown[]>('SELECT FROM connections WHERE id = $1', [connectionId])).length > 0;
  }

  /** Records an open tunnel, and deletes the command of the connection. @returns null if the tunnel was replaced meanwhile */
  async opened({ connectionId, tunnel }: TunnelName, serverInfo: ServerInfo): Promise<ChangedConnection | null> {
    const [[row]] = await this.database.query<[ChangedConnection[]]>(
      `UPDATE connections c
          SET (${STATUS_COLUMNS}) = ('connected', 'ok', NULL, NULL, now()),
              last_ok_at = now(), server_info = $3, sealed_query = NULL, revision = c.revision + 1
         FROM uplink_tunnels t
        WHERE c.id = $1 AND t.connection_id = c.id AND t.tunnel = $2
        RETURNING ${changed}`,
      [connectionId, tunnel, JSON.stringify(serverInfo)],
    );
    return row ?? null;
  }

  /**
   * Releases tunnels, and sets the status of their connections.
   *
   * @returns the changed connections: a replaced tunnel changes none
   */
  async release(names: TunnelName[], { state, reason, message }: ConnectionStatus): Promise<ChangedConnection[]> {
    if (names.length === 0) return [];
    // Locks the connection before its tunnel, as its deletion does: the published client closes and deletes in quick
    // succession.
    const [rows] = await this.database.query<[ChangedConnection[]]>(
      `WITH names AS (SELECT * FROM unnest($1::uuid[], $2::bigint[]) AS names(id, tunnel)),
            locked AS (SELECT id FROM connections WHERE id IN (SELECT id FROM names) ORDER BY id FOR UPDATE),
            released AS (DELETE FROM uplink_tunnels t USING names, locked
                          WHERE t.connection_id = locked.id AND t.connection_id = names.id AND t.tunnel = names.tunnel
                      RETURNING t.connection_id)
       UPDATE connections c
          SET (${STATUS_COLUMNS}) = ($3, $4, $5, NULL, now()),
              server_info = NULL, revision = c.revision + 1
         FROM released WHERE c.id = released.connection_id
       RETURNING ${changed}`,
      [names.map(({ connectionId }) => connectionId), names.map(({ tunnel }) => tunnel), state, reason, message],
    );
    return rows;
  }

  /** Returns tunnels of processes whose lease has expired. */
  listAbandoned(): Promise<TunnelName[]> {
    return this.database.query<TunnelName[]>(
      `SELECT held.connection_id AS "connectionId", held.tunnel FROM uplink_tunnels held WHERE NOT ${ownerLives('held')}`,
    );
  }
}

const changed = 'c.id, c.namespace_id AS "namespaceId", c.connection_id AS "connectionId", c.revision';
