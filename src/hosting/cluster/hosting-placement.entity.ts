import { Column, Entity, Index, PrimaryColumn } from 'typeorm';

/** The host of a stateful program, and the data folder of its state. */
@Entity('hosting_placements')
export class HostingPlacement {
  /** The id of a server or connection. The row is deleted with its owner. */
  @PrimaryColumn('uuid', { name: 'owner_id' })
  ownerId: string;

  /** Process that runs the program, while its lease of {@link epoch} is valid; null when it was released. */
  @Index('hosting_placements_host')
  @Column('uuid', { name: 'host_id', nullable: true })
  hostId: string | null;

  @Column('bigint', { nullable: true })
  epoch: string | null;

  /** Data directory that holds the state and outlives the host. */
  @Column('uuid', { name: 'data_id' })
  dataId: string;
}
