import { Column, Entity, Index, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import type { Relation } from 'typeorm';
import { HostingHost } from './hosting-host.entity.js';

/** Where a program that keeps state runs, and where its state lies. Programs without state have no row. */
@Entity('hosting_placements')
export class HostingPlacement {
  /** The program in all its versions: a server's or a connection's id. The row goes when the owner is forgotten. */
  @PrimaryColumn('uuid', { name: 'owner_id' })
  ownerId: string;

  /** Null when that host is gone. */
  @Index('hosting_placements_host')
  @Column('uuid', { name: 'host_id', nullable: true })
  hostId: string | null;

  @ManyToOne(() => HostingHost, { nullable: true, onDelete: 'SET NULL' })
  @JoinColumn({ name: 'host_id', foreignKeyConstraintName: 'hosting_placements_host_fk' })
  host: Relation<HostingHost> | null;

  /** The data folder that holds its state: outlives the host. */
  @Column('uuid', { name: 'data_id' })
  dataId: string;
}
