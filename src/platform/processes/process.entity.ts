import { Column, Entity, PrimaryColumn } from 'typeorm';

/**
 * A process of this service that owns rows of others: placements of hosted programs, tunnels of uplinks. Its lease is the
 * lease of all of them, so one row is renewed, not one for each (10,000 tunnels would be 2,000 updates a second).
 */
@Entity('processes')
export class ServiceProcess {
  /** New with every start. */
  @PrimaryColumn('uuid')
  id: string;

  /** Parts of the process that own rows: `api` (tunnels), `host` (programs). */
  @Column('text', { array: true })
  roles: string[];

  /** Where other processes reach it (`ADVERTISE_URL`); null when it does not say. */
  @Column('text', { nullable: true })
  address: string | null;

  /**
   * Grows whenever the process registers, at its start and after its lease was lost. An owned row names process and epoch,
   * and one of an earlier epoch counts for nothing. Text, since a bigint does not fit a number.
   */
  @Column({ type: 'bigint', generated: 'identity', generatedIdentity: 'ALWAYS' })
  epoch: string;

  /** Data of its roles for other processes, such as the engines of a host. */
  @Column('jsonb')
  details: Record<string, unknown>;

  /** Past this moment, by the database's clock, everything it owns is free. */
  @Column({ type: 'timestamptz', name: 'lease_until', precision: 3 })
  leaseUntil: Date;
}
