import { Column, CreateDateColumn, Entity, Index, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import type { Relation } from 'typeorm';
import { Connection } from '../core/connection.entity.js';
import { UplinkProcess } from './uplink-process.entity.js';

/** The one tunnel of an uplink connection, and the process that holds it. */
@Entity('uplink_tunnels')
export class UplinkTunnel {
  @PrimaryColumn('uuid', { name: 'connection_id' })
  connectionId: string;

  @ManyToOne(() => Connection, { nullable: false, onDelete: 'CASCADE' })
  @JoinColumn({ name: 'connection_id', foreignKeyConstraintName: 'uplink_tunnels_connection_fk' })
  connection: Relation<Connection>;

  @Index('uplink_tunnels_process')
  @Column('uuid', { name: 'process_id' })
  processId: string;

  @ManyToOne(() => UplinkProcess, { nullable: false, onDelete: 'CASCADE' })
  @JoinColumn({ name: 'process_id', foreignKeyConstraintName: 'uplink_tunnels_process_fk' })
  process: Relation<UplinkProcess>;

  /**
   * Names this tunnel and no earlier or later one: it grows with every pairing, also of the same connection. Whoever held an
   * earlier one can change nothing any more. Text, since a bigint does not fit a number.
   */
  @Column({ type: 'bigint', generated: 'identity', generatedIdentity: 'ALWAYS' })
  tunnel: string;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz', precision: 3 })
  createdAt: Date;
}
