import { Column, Entity, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import type { Relation } from 'typeorm';
import { ConnectionMock } from './connection-mock.entity.js';

/** A recorded call that a mock replays: its own copy, made with the mock. */
@Entity('mock_replies')
export class MockReply {
  @PrimaryColumn('uuid', { name: 'connection_id' })
  connectionId: string;

  /** CASCADE: the copy goes with its mock. */
  @ManyToOne(() => ConnectionMock, { nullable: false, onDelete: 'CASCADE' })
  @JoinColumn({ name: 'connection_id', foreignKeyConstraintName: 'mock_replies_mock_fk' })
  mock: Relation<ConnectionMock>;

  /** In the order of recording, from 1. */
  @PrimaryColumn('integer')
  place: number;

  /** Tool, arguments and result, sealed by the vault for the mock's connection. */
  @Column('text')
  sealed: string;
}
