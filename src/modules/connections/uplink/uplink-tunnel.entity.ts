import { Column, CreateDateColumn, Entity, Index, JoinColumn, ManyToOne, PrimaryColumn, type Relation } from 'typeorm';
import { Connection } from '../core/connection.entity.js';

/** The tunnel of an uplink connection, and the process that holds it. */
@Entity('uplink_tunnels')
export class UplinkTunnel {
  @PrimaryColumn('uuid', { name: 'connection_id' })
  connectionId: string;

  @ManyToOne(() => Connection, { nullable: false, onDelete: 'CASCADE' })
  @JoinColumn({ name: 'connection_id', foreignKeyConstraintName: 'uplink_tunnels_connection_fk' })
  connection: Relation<Connection>;

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
