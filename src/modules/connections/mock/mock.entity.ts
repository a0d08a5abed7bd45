import { Column, Entity, ForeignKey, PrimaryColumn } from 'typeorm';
import { Connection } from '../core/connection.entity.js';
import type { FrozenServer, UseCounts } from './simulator/simulator.js';

/** Requests of a namespace to the language model on one day. Only the current day is stored. */
@Entity('simulator_days')
export class SimulatorUsage {
  /** Day, by the clock of the database. */
  @PrimaryColumn('date')
  day: string;

  /** Id of the namespace, without a foreign key: the requests of a deleted namespace remain counted today. */
  @PrimaryColumn('uuid', { name: 'namespace_id' })
  namespaceId: string;

  @Column('integer')
  calls: number;
}

/** A copy of a recorded call that belongs to the mock. */
@Entity('mock_replies')
export class MockReply {
  @ForeignKey(() => ConnectionMock, { name: 'mock_replies_mock_fk', onDelete: 'CASCADE' })
  @PrimaryColumn('uuid', { name: 'connection_id' })
  connectionId: string;

  /** Counts from 1. */
  @PrimaryColumn('integer')
  place: number;

  /** Content, sealed by the vault for the mock's connection. */
  @Column('text')
  sealed: string;
}

/** The newest 1,000 calls of each mock are stored. */
@Entity('mock_calls')
export class MockCall {
  @ForeignKey(() => ConnectionMock, { name: 'mock_calls_mock_fk', onDelete: 'CASCADE' })
  @PrimaryColumn('uuid', { name: 'connection_id' })
  connectionId: string;

  /** Counts from 1, without gaps. */
  @PrimaryColumn('integer')
  seq: number;

  @Column('text')
  tool: string;

  /** Arguments and result, each null when longer than 16 KB of JSON. Sealed by the vault for the connection's row. */
  @Column('text')
  sealed: string;

  @Column({ type: 'timestamptz', name: 'called_at', precision: 3, default: () => 'now()' })
  calledAt: Date;
}

@Entity('connection_mocks')
export class ConnectionMock {
  @ForeignKey(() => Connection, { name: 'connection_mocks_connection_fk', onDelete: 'CASCADE' })
  @PrimaryColumn('uuid', { name: 'connection_id' })
  connectionId: string;

  @Column('jsonb')
  server: FrozenServer;

  /** Number of the last call. The row is locked while a call is appended. */
  @Column('integer', { default: 0 })
  calls: number;

  @Column('jsonb', { default: {} })
  uses: UseCounts;
}
