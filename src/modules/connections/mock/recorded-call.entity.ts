import { Column, Entity, Index, JoinColumn, ManyToOne, PrimaryGeneratedColumn } from 'typeorm';
import type { Relation } from 'typeorm';
import { Connection } from '../core/connection.entity.js';

/** A real tool call of a connection that is being recorded. Kept for 7 days; at most 1,000 calls and 16 MB a connection. */
@Entity('recorded_calls')
@Index('recorded_calls_order', ['connectionId', 'seq'])
export class RecordedCallRow {
  /** The order of recording. Text, since a bigint does not fit a number. */
  @PrimaryGeneratedColumn('identity', { type: 'bigint', generatedIdentity: 'ALWAYS' })
  seq: string;

  @Column('uuid', { name: 'connection_id' })
  connectionId: string;

  /** CASCADE: a recording goes with its connection. Mocks made from it have a copy. */
  @ManyToOne(() => Connection, { nullable: false, onDelete: 'CASCADE' })
  @JoinColumn({ name: 'connection_id', foreignKeyConstraintName: 'recorded_calls_connection_fk' })
  connection: Relation<Connection>;

  @Column('text')
  tool: string;

  /** Tool, arguments and result, sealed by the vault for the connection's row: they may hold secrets. */
  @Column('text')
  sealed: string;

  /** Size before sealing. */
  @Column('integer')
  bytes: number;

  @Index('recorded_calls_age')
  @Column({ type: 'timestamptz', name: 'recorded_at', precision: 3, default: () => 'now()' })
  recordedAt: Date;
}
