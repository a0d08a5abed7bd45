import { Column, CreateDateColumn, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import { Connection } from '../core/connection.entity.js';

/** The tunnel of an uplink connection, and the process that holds it. */
@Entity('uplink_tunnels')
export class UplinkTunnel {
  @ForeignKey(() => Connection, { name: 'uplink_tunnels_connection_fk', onDelete: 'CASCADE' })
  @PrimaryColumn('uuid', { name: 'connection_id' })
  connectionId: string;

  /** Process that holds the tunnel, while its lease of {@link epoch} holds. */
  @Index('uplink_tunnels_process')
  @Column('uuid', { name: 'process_id' })
  processId: string;

  @Column('bigint')
  epoch: string;

  /**
   * Number of this tunnel, which grows with every pairing, also of the same connection: a process that held an earlier
   * tunnel can change nothing any more. Text, since a bigint does not fit a number.
   */
  @Column({ type: 'bigint', generated: 'identity', generatedIdentity: 'ALWAYS' })
  tunnel: string;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz', precision: 3 })
  createdAt: Date;
}
