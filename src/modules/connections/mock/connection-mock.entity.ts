import { Column, Entity, JoinColumn, OneToOne, PrimaryColumn } from 'typeorm';
import type { Relation } from 'typeorm';
import type { FrozenServer } from './simulator/simulator.js';
import { Connection } from '../core/connection.entity.js';

/** What a simulated connection answers from: the server as it was when the connection was made, and where its calls led. */
@Entity('connection_mocks')
export class ConnectionMock {
  @PrimaryColumn('uuid', { name: 'connection_id' })
  connectionId: string;

  /** CASCADE: a mock is part of its connection. */
  @OneToOne(() => Connection, { nullable: false, onDelete: 'CASCADE' })
  @JoinColumn({ name: 'connection_id', foreignKeyConstraintName: 'connection_mocks_connection_fk' })
  connection: Relation<Connection>;

  /** With the scenario it decides every answer. */
  @Column('text')
  seed: string;

  @Column('jsonb')
  server: FrozenServer;

  /** The number of the last call. Its row is locked while a call is put behind it. */
  @Column('integer', { default: 0 })
  calls: number;

  /** The things of the world after that call, as JSON text, which may hold what jsonb cannot. Null before the first. */
  @Column('text', { nullable: true })
  things: string | null;

  /** The counters of the world after that call, likewise; they change with every call and things do not. */
  @Column('text', { nullable: true })
  counters: string | null;
}
