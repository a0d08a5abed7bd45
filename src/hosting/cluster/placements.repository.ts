import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { ownerLives } from '../../platform/processes/processes.repository.js';

export interface Placement {
  hostId: string | null;
  dataId: string;
}

export interface Claimant {
  hostId: string;
  epoch: string;
  dataId: string;
}

@Injectable()
export class PlacementsRepository {
  constructor(private readonly database: DataSource) {}

  /** Returns the placement of a program; null when it never ran. */
  async find(ownerId: string): Promise<Placement | null> {
    const [row] = await this.database.query<Placement[]>(
      `SELECT CASE WHEN ${ownerLives('held', 'host_id')} THEN held.host_id END AS "hostId", held.data_id AS "dataId"
         FROM hosting_placements held WHERE held.owner_id = $1`,
      [ownerId],
    );
    return row ?? null;
  }

  /**
   * @returns the data folder of its previous state, null for a new program; undefined when another host has it, or the
   * lease of this one has expired
   */
  async claim(ownerId: string, { hostId, epoch, dataId }: Claimant): Promise<string | null | undefined> {
    const [row] = await this.database.query<{ dataBefore: string | null }[]>(
      `WITH before AS (SELECT data_id FROM hosting_placements WHERE owner_id = $1)
       INSERT INTO hosting_placements AS held (owner_id, host_id, epoch, data_id)
       SELECT $1, p.id, p.epoch, $4 FROM processes p WHERE p.id = $2 AND p.epoch = $3 AND p.lease_until > now()
       ON CONFLICT (owner_id) DO UPDATE
          SET host_id = EXCLUDED.host_id, epoch = EXCLUDED.epoch, data_id = EXCLUDED.data_id
        WHERE held.host_id IS NOT DISTINCT FROM EXCLUDED.host_id OR NOT ${ownerLives('held', 'host_id')}
       RETURNING (SELECT data_id FROM before) AS "dataBefore"`,
      [ownerId, hostId, epoch, dataId],
    );
    return row?.dataBefore;
  }

  async remove(ownerId: string): Promise<void> {
    await this.database.query('DELETE FROM hosting_placements WHERE owner_id = $1', [ownerId]);
  }

  /** Releases the placements of a host, and leaves the state of its programs in place. */
  async releaseAll(hostId: string): Promise<void> {
    await this.database.query('UPDATE hosting_placements SET host_id = NULL, epoch = NULL WHERE host_id = $1', [
      hostId,
    ]);
  }

  async ownersAt(hostId: string, epoch: string): Promise<string[]> {
    const rows = await this.database.query<{ ownerId: string }[]>(
      'SELECT owner_id AS "ownerId" FROM hosting_placements WHERE host_id = $1 AND epoch = $2',
      [hostId, epoch],
    );
    return rows.map(({ ownerId }) => ownerId);
  }

  /** Returns those owners without state in this data folder: they have no row, or one of another folder. */
  async withoutStateIn(dataId: string, ownerIds: string[]): Promise<string[]> {
    const rows = await this.database.query<{ ownerId: string }[]>(
      `SELECT owner.id AS "ownerId" FROM unnest($1::uuid[]) AS owner(id)
        WHERE NOT EXISTS (SELECT 1 FROM hosting_placements p WHERE p.owner_id = owner.id AND p.data_id = $2)`,
      [ownerIds, dataId],
    );
    return rows.map(({ ownerId }) => ownerId);
  }
}
