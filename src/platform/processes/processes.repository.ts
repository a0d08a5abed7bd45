import { Injectable } from '@nestjs/common';
import { DataSource, type EntityManager } from 'typeorm';
import type { ServiceProcess } from './process.entity.js';

export type LiveProcess = Pick<ServiceProcess, 'id' | 'epoch' | 'address' | 'details'>;

export interface Registration {
  id: string;
  roles: string[];
  address: string | null;
  details: object;
  leaseMs: number;
  /** An existing row with this address is then that of an earlier process. */
  isAddressOwn: boolean;
}

/**
 * Returns the SQL condition that the process that the row `alias` names still owns the row.
 *
 * @param alias table alias with the columns `epoch` and `processColumn`
 */
export function ownerLives(alias: string, processColumn = 'process_id'): string {
  return `EXISTS (SELECT 1 FROM processes p
                   WHERE p.id = ${alias}.${processColumn} AND p.epoch = ${alias}.epoch AND p.lease_until > now())`;
}

/** Returns the base URL of the newest process with the role `api` and a valid lease; null without one. */
export async function runningBaseUrl(database: { query<T>(sql: string): Promise<T> }): Promise<string | null> {
  const [row] = await database.query<{ baseUrl: string | null }[]>(
    `SELECT details->>'baseUrl' AS "baseUrl" FROM processes
      WHERE 'api' = ANY(roles) AND lease_until > now() AND details ? 'baseUrl' ORDER BY epoch DESC LIMIT 1`,
  );
  return row?.baseUrl ?? null;
}

/** Lists the workers of `WORKERS` with valid leases. */
export function runningWorkers(database: {
  query<T>(sql: string): Promise<T>;
}): Promise<{ machine: string; numbers: number[] }[]> {
  return database.query(
    `SELECT details->>'machine' AS machine, array_agg((details->>'worker')::int ORDER BY details->'worker') AS numbers
       FROM processes WHERE lease_until > now() AND details ? 'worker' GROUP BY 1 ORDER BY 1`,
  );
}

@Injectable()
export class ProcessesRepository {
  constructor(private readonly database: DataSource) {}

  /**
   * Replaces any previous row, and removes the row of the previous process at this address: that one has exited, since
   * its port is free. @returns the epoch
   */
  async register(registration: Registration, tx: EntityManager): Promise<string> {
    const { id, roles, address, details, leaseMs, isAddressOwn } = registration;
    await tx.query(`DELETE FROM processes WHERE id <> $1 AND address = $2 AND ($3 OR details->>'machine' = $4)`, [
      id,
      address,
      isAddressOwn,
      (details as { machine?: string }).machine ?? null,
    ]);
    const [row] = await tx.query<[{ epoch: string }]>(
      `INSERT INTO processes (id, roles, address, details, lease_until)
       VALUES ($1, $2, $3, $4, now() + $5 * interval '1 millisecond')
       ON CONFLICT (id) DO UPDATE SET epoch = DEFAULT, roles = EXCLUDED.roles, address = EXCLUDED.address,
                                      details = EXCLUDED.details, lease_until = EXCLUDED.lease_until
       RETURNING epoch`,
      [id, roles, address, JSON.stringify(details), leaseMs],
    );
    return row.epoch;
  }

  /** @returns false when the lease of this epoch has expired */
  async renew({ id, roles, details, leaseMs }: Registration, epoch: string): Promise<boolean> {
    const [rows] = await this.database.query<[unknown[]]>(
      `UPDATE processes SET lease_until = now() + $5 * interval '1 millisecond', roles = $3, details = $4
        WHERE id = $1 AND epoch = $2 AND lease_until > now() RETURNING id`,
      [id, epoch, roles, JSON.stringify(details), leaseMs],
    );
    return rows.length > 0;
  }

  live(role: string): Promise<LiveProcess[]> {
    return this.database.query<LiveProcess[]>(
      'SELECT id, epoch, address, details FROM processes WHERE $1 = ANY(roles) AND lease_until > now()',
      [role],
    );
  }

  async remove(id: string): Promise<void> {
    await this.database.query('DELETE FROM processes WHERE id = $1', [id]);
  }

  async removeExpired(): Promise<void> {
    await this.database.query('DELETE FROM processes WHERE lease_until <= now()');
  }
}
