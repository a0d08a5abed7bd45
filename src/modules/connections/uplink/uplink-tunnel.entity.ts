import { Column, CreateDateColumn, Entity, ForeignKey, Index, PrimaryColumn } from 'typeorm';
import { Connection } from '../core/connection.entity.js';

@Entity('uplink_tunnels')
export class UplinkTunnel {
  @ForeignKey(() => Connection, { name: 'uplink_tunnels_connection_fk', onDelete: 'CASCADE' })
  @PrimaryColumn('uuid', { name: 'connection_id' })
  connectionId: string;

  /** Process that holds the tunnel, while it holds its lease of {@link epoch}. */
  @Index('uplink_tunnels_process')
  @Column('uuid', { name: 'process_id' })
  processId: string;

  @Column('bigint')
  epoch: string;

  /**
   * Grows with every pairing: a process that held an earlier tunnel of the connection can no longer change anything. A string, because a
   * bigint does not fit a number.
   */
  @Column({ type: 'bigint', generated: 'identity', generatedIdentity: 'ALWAYS' })
  tunnel: string;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz', precision: 3 })
  createdAt: Date;
}
