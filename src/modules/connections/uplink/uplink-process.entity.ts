import { Column, Entity, PrimaryColumn } from 'typeorm';

/**
 * A process that holds tunnels. Its lease is the lease of all of them: one row is renewed, not one for each tunnel (10,000
 * of them would be 2,000 updates a second).
 */
@Entity('uplink_processes')
export class UplinkProcess {
  /** Made anew with every start. */
  @PrimaryColumn('uuid')
  id: string;

  /** Where other processes reach it (`ADVERTISE_URL`); null when it does not say. */
  @Column('text', { nullable: true })
  url: string | null;

  /** Past this moment, by the database's clock, its tunnels count as closed. */
  @Column({ type: 'timestamptz', name: 'lease_until', precision: 3 })
  leaseUntil: Date;
}
