import { Column, Entity, Index, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import type { Relation } from 'typeorm';
import { Connection } from '../core/connection.entity.js';

/** What the module of a connection printed or threw. It comes after its invocation's row, or before. */
@Entity('connection_lines')
@Index('connection_lines_invocation', ['invocationId', 'seq'])
@Index('connection_lines_newest', ['connectionId', 'seq'])
@Index('connection_lines_at', ['at'])
export class ConnectionLine {
  /** Order of arrival. Text, since a bigint does not fit a number. */
  @PrimaryColumn({ type: 'bigint', generated: 'identity', generatedIdentity: 'ALWAYS' })
  seq: string;

  @Column('uuid', { name: 'connection_id' })
  connectionId: string;

  /** CASCADE: a log goes with its connection. */
  @ManyToOne(() => Connection, { nullable: false, onDelete: 'CASCADE' })
  @JoinColumn({ name: 'connection_id', foreignKeyConstraintName: 'connection_lines_connection_fk' })
  connection: Relation<Connection>;

  /** No foreign key: the invocation is written by another process, or is not kept any more. */
  @Column('uuid', { name: 'invocation_id' })
  invocationId: string;

  @Column({ type: 'timestamptz', precision: 3 })
  at: Date;

  /** Of a console line; null for what was thrown. */
  @Column('text', { nullable: true })
  level: string | null;

  /** Of what was thrown; null for a console line. */
  @Column('text', { nullable: true })
  name: string | null;

  @Column('text')
  message: string;
}
