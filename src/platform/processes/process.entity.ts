import { Column, Entity, PrimaryColumn } from 'typeorm';

/**
 * Rows of others name the process: placements of hosted programs, tunnels of uplinks. Its lease is the lease of all of
 * them, so one row is renewed, not one for each (10,000 tunnels would be 2,000 updates a second).
 */
@Entity('processes')
export class ServiceProcess {
  @PrimaryColumn('uuid')
  id: string;

  /** Parts of the process that own rows: `api` (tunnels), `host` (programs). */
  @Column('text', { array: true })
  roles: string[];

  /** Where other processes reach it (`ADVERTISE_URL`); null if unknown. */
  @Column('text', { nullable: true })
  address: string | null;

  /**
   * Increases whenever the process registers, at its start and after it lost its lease. An owned row names process and
   * epoch, and is void with an earlier epoch. Text, since a bigint does not fit a number.
   */
  @Column({ type: 'bigint', generated: 'identity', generatedIdentity: 'ALWAYS' })
  epoch: string;

  /** Data of its roles for other processes, such as the engines of a host. */
  @Column('jsonb')
  details: Record<string, unknown>;

  /** After this moment, by the database's clock, everything it owns is free. */
  @Column({ type: 'timestamptz', name: 'lease_until', precision: 3 })
  leaseUntil: Date;
}
