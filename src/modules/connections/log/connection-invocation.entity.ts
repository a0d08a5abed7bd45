import { Check, Column, Entity, Index, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import type { Relation } from 'typeorm';
import type { InvocationOutcome } from '../../logs/invocation.types.js';
import { Connection } from '../core/connection.entity.js';

/**
 * One request to a connection, of the newest ones. Neither arguments nor results nor queries: what happened, and how long
 * it took. Times are milliseconds, null where the channel could not tell.
 */
@Entity('connection_invocations')
@Index('connection_invocations_newest', ['connectionId', 'at', 'id'])
@Index('connection_invocations_at', ['at'])
@Check('connection_invocations_outcome', `"outcome" IN ('ok', 'exception', 'canceled', 'denied')`)
export class ConnectionInvocation {
  @PrimaryColumn('uuid')
  id: string;

  @Column('uuid', { name: 'connection_id' })
  connectionId: string;

  /** CASCADE: a log goes with its connection. */
  @ManyToOne(() => Connection, { nullable: false, onDelete: 'CASCADE' })
  @JoinColumn({ name: 'connection_id', foreignKeyConstraintName: 'connection_invocations_connection_fk' })
  connection: Relation<Connection>;

  /** When the request came. */
  @Column({ type: 'timestamptz', precision: 3 })
  at: Date;

  /** The HTTP method. */
  @Column('text')
  method: string;

  /** Without its query. */
  @Column('text')
  url: string;

  /** Null when the message could not be read. */
  @Column('text', { name: 'rpc_method', nullable: true })
  rpcMethod: string | null;

  @Column('text', { name: 'tool_name', nullable: true })
  toolName: string | null;

  /** The HTTP status of the answer. */
  @Column('integer')
  status: number;

  @Column('text')
  outcome: InvocationOutcome;

  /** What went wrong: the kind of failure, and a sentence. Null when nothing did. */
  @Column('text', { name: 'failure_name', nullable: true })
  failureName: string | null;

  @Column('text', { name: 'failure_message', nullable: true })
  failureMessage: string | null;

  @Column('real', { name: 'guard_ms', nullable: true })
  guardMs: number | null;

  @Column('real', { name: 'queue_ms', nullable: true })
  queueMs: number | null;

  @Column('real', { name: 'connect_ms', nullable: true })
  connectMs: number | null;

  @Column('real', { name: 'first_byte_ms', nullable: true })
  firstByteMs: number | null;

  @Column('real', { name: 'total_ms' })
  totalMs: number;
}
