import { Column, Entity, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import type { Relation } from 'typeorm';
import { ConnectionMock } from './connection-mock.entity.js';

/** A call that a simulated connection answered. The newest 1,000 of each are kept. */
@Entity('mock_calls')
export class MockCall {
  @PrimaryColumn('uuid', { name: 'connection_id' })
  connectionId: string;

  /** CASCADE: the history goes with its mock. */
  @ManyToOne(() => ConnectionMock, { nullable: false, onDelete: 'CASCADE' })
  @JoinColumn({ name: 'connection_id', foreignKeyConstraintName: 'mock_calls_mock_fk' })
  mock: Relation<ConnectionMock>;

  /** Counts from 1, without gaps. */
  @PrimaryColumn('integer')
  seq: number;

  @Column('text')
  tool: string;

  /** JSON text; null when it was longer than 16 KB. */
  @Column('text', { nullable: true })
  arguments: string | null;

  /** The result as JSON text; null when it was longer than 16 KB. */
  @Column('text', { nullable: true })
  answer: string | null;

  @Column({ type: 'timestamptz', name: 'called_at', precision: 3, default: () => 'now()' })
  calledAt: Date;
}
