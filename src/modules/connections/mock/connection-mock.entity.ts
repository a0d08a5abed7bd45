import { Column, Entity, JoinColumn, OneToOne, PrimaryColumn } from 'typeorm';
import type { Relation } from 'typeorm';
import { Connection } from '../core/connection.entity.js';
import type { FrozenServer, UseCounts } from './simulator/simulator.js';

/** The mock of a simulated connection: its server at the moment of creation, and the state of its fixture or recording. */
@Entity('connection_mocks')
export class ConnectionMock {
  @PrimaryColumn('uuid', { name: 'connection_id' })
  connectionId: string;

  /** CASCADE: a mock is part of its connection. */
  @OneToOne(() => Connection, { nullable: false, onDelete: 'CASCADE' })
  @JoinColumn({ name: 'connection_id', foreignKeyConstraintName: 'connection_mocks_connection_fk' })
  connection: Relation<Connection>;

  /** The connection id. With the scenario it seeds every value. */
  @Column('text')
  seed: string;

  @Column('jsonb')
  server: FrozenServer;

  /** Number of the last call. The row is locked while a call is appended. */
  @Column('integer', { default: 0 })
  calls: number;

  /** Calls that each fixture rule and each recorded call has answered, by key. */
  @Column('jsonb', { default: {} })
  uses: UseCounts;
}
