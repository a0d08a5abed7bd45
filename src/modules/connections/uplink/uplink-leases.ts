import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { QueryFailedError, Repository } from 'typeorm';
import { Env } from '../../../config/env.js';
import type { ServerInfo } from '../../../mcp/protocol/protocol.js';
import { isForeignKeyViolation } from '../../../platform/database/postgres-errors.js';
import type { ConnectionStatus } from '../core/connection-status.js';
import { ResourceNotFoundError } from '../core/connections.errors.js';
import { UplinkTunnel } from './uplink-tunnel.entity.js';

/** A connection whose row was written: everything that was read from it is old. */
export interface ChangedConnection {
  id: string;
  namespaceId: string;
  connectionId: string;
  revision: number;
}

/** Names one tunnel of one connection (`connections.id`). */
export interface TunnelName {
  connectionId: string;
  tunnel: string;
}

/** Where a tunnel is. */
export interface TunnelOwner {
  tunnel: string;
  processId: string;
  /** Null when the process does not say where it is reached. */
  url: string | null;
}

/**
 * Which process holds the tunnel of which connection, in Postgres. Every statement names the tunnel it is about, so that
 * one that was replaced changes neither the row nor the status of the connection.
 */
@Injectable()
export class UplinkLeases {
  readonly processId = randomUUID();

  constructor(
    @InjectRepository(UplinkTunnel) private readonly tunnels: Repository<UplinkTunnel>,
    private readonly env: Env,
  ) {}

  /** Says that this process lives. @returns the tunnels that are its own */
  async renew(): Promise<Set<string>> {
    await this.tunnels.query(
      `INSERT INTO uplink_processes (id, url, lease_until) VALUES ($1, $2, now() + $3 * interval '1 millisecond')
       ON CONFLICT (id) DO UPDATE SET lease_until = EXCLUDED.lease_until`,
      [this.processId, this.env.internalUrl, this.env.uplinkLeaseMs],
    );
    const rows = await this.tunnels.query<{ tunnel: string }[]>(
      'SELECT tunnel FROM uplink_tunnels WHERE process_id = $1',
      [this.processId],
    );
    return new Set(rows.map(({ tunnel }) => tunnel));
  }

  /**
   * Makes this process the owner of the connection's tunnel, where there is none or `force` is set.
   *
   * @returns the new tunnel's name; null when another one is open
   * @throws ResourceNotFoundError when the connection is gone
   */
  async claim(connectionId: string, force: boolean): Promise<string | null> {
    try {
      return await this.insert(connectionId, force);
    } catch (error) {
      if (!isForeignKeyViolation(error)) throw error;
      if (constraintOf(error) === 'uplink_tunnels_connection_fk') throw new ResourceNotFoundError();
      // Somebody thought this process dead.
      await this.renew();
      return this.insert(connectionId, force);
    }
  }

  /** The live tunnel of a connection; null when there is none. */
  async owner(connectionId: string): Promise<TunnelOwner | null> {
    const [row] = await this.tunnels.query<TunnelOwner[]>(
      `SELECT t.tunnel, t.process_id AS "processId", p.url
         FROM uplink_tunnels t JOIN uplink_processes p ON p.id = t.process_id
        WHERE t.connection_id = $1 AND p.lease_until > now()`,
      [connectionId],
    );
    return row ?? null;
  }

  /** Writes that the local server behind a tunnel is there. @returns null when the tunnel was replaced meanwhile */
  async opened({ connectionId, tunnel }: TunnelName, serverInfo: ServerInfo): Promise<ChangedConnection | null> {
    const [[row]] = await this.tunnels.query<[ChangedConnection[]]>(
      `UPDATE connections c
          SET status_state = 'connected', status_reason = 'ok', status_message = NULL, status_inputs = NULL,
              status_since = now(), last_ok_at = now(),
              server_info = $3, revision = c.revision + 1
         FROM uplink_tunnels t
        WHERE c.id = $1 AND t.connection_id = c.id AND t.tunnel = $2
        RETURNING ${changed}`,
      [connectionId, tunnel, JSON.stringify(serverInfo)],
    );
    return row ?? null;
  }

  /**
   * Gives tunnels back and writes what their connections are without them. Tunnels that were replaced, and those of
   * connections that are gone, change nothing.
   *
   * @returns the connections that were changed
   */
  async release(names: TunnelName[], { state, reason, message }: ConnectionStatus): Promise<ChangedConnection[]> {
    if (names.length === 0) return [];
    // The connection before its tunnel, as its deletion locks them: the published client closes and deletes at once.
    const [rows] = await this.tunnels.query<[ChangedConnection[]]>(
      `WITH given AS (SELECT * FROM unnest($1::uuid[], $2::bigint[]) AS given(id, tunnel)),
            locked AS (SELECT id FROM connections WHERE id IN (SELECT id FROM given) ORDER BY id FOR UPDATE),
            gone AS (DELETE FROM uplink_tunnels t USING given, locked
                      WHERE t.connection_id = locked.id AND t.connection_id = given.id AND t.tunnel = given.tunnel
                  RETURNING t.connection_id)
       UPDATE connections c
          SET status_state = $3, status_reason = $4, status_message = $5, status_inputs = NULL, status_since = now(),
              server_info = NULL, revision = c.revision + 1
         FROM gone WHERE c.id = gone.connection_id
       RETURNING ${changed}`,
      [names.map(({ connectionId }) => connectionId), names.map(({ tunnel }) => tunnel), state, reason, message],
    );
    return rows;
  }

  /** The tunnels of processes that gave no sign of life for longer than their lease. */
  async abandoned(): Promise<TunnelName[]> {
    return this.tunnels.query<TunnelName[]>(
      `SELECT t.connection_id AS "connectionId", t.tunnel
         FROM uplink_tunnels t JOIN uplink_processes p ON p.id = t.process_id
        WHERE p.lease_until <= now()`,
    );
  }

  /** Forgets dead processes that hold nothing, and with `own` this one. */
  async forgetProcesses(own = false): Promise<void> {
    await this.tunnels.query(
      `DELETE FROM uplink_processes p
        WHERE (p.lease_until <= now() OR ($2 AND p.id = $1))
          AND NOT EXISTS (SELECT 1 FROM uplink_tunnels t WHERE t.process_id = p.id)`,
      [this.processId, own],
    );
  }

  private async insert(connectionId: string, force: boolean): Promise<string | null> {
    const [row] = await this.tunnels.query<{ tunnel: string }[]>(
      `INSERT INTO uplink_tunnels AS held (connection_id, process_id) VALUES ($1, $2)
       ON CONFLICT (connection_id) DO UPDATE
          SET process_id = EXCLUDED.process_id, tunnel = DEFAULT, created_at = now()
        WHERE $3 OR NOT EXISTS (SELECT 1 FROM uplink_processes p WHERE p.id = held.process_id AND p.lease_until > now())
       RETURNING tunnel`,
      [connectionId, this.processId, force],
    );
    return row?.tunnel ?? null;
  }
}

const changed = 'c.id, c.namespace_id AS "namespaceId", c.connection_id AS "connectionId", c.revision';

function constraintOf(error: unknown): string | undefined {
  return error instanceof QueryFailedError ? (error.driverError as { constraint?: string }).constraint : undefined;
}
