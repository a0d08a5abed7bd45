import { Column, Entity, PrimaryColumn } from 'typeorm';
import type { EngineName } from '../hosting.types.js';

/**
 * A process that runs programs. Its lease is the lease of every program with state it holds: one row is renewed, not one
 * for each program. Not the row of its uplinks: a process that missed its time may take those up again, programs never.
 */
@Entity('hosting_hosts')
export class HostingHost {
  /** Made anew with every start, and whenever the lease ran out. */
  @PrimaryColumn('uuid')
  id: string;

  /** Where other processes reach it (`ADVERTISE_URL`); null when it does not say: then only it can use its programs. */
  @Column('text', { nullable: true })
  url: string | null;

  /** Names its data folder, see `data-folder.ts`: hosts with the same one find each other's state. */
  @Column('uuid', { name: 'data_id' })
  dataId: string;

  /** What it runs: null, or a sentence why not. */
  @Column('jsonb')
  engines: Record<EngineName, string | null>;

  /** Past this moment, by the database's clock, it runs no program with state any more. */
  @Column({ type: 'timestamptz', name: 'lease_until', precision: 3 })
  leaseUntil: Date;
}
