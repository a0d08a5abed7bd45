import { Column, Entity, JoinColumn, OneToOne, PrimaryColumn } from 'typeorm';
import type { Relation } from 'typeorm';
import { Server } from '../server.entity.js';

/** How a server's owner wants it run and recorded. A server without a row has the defaults. */
@Entity('server_runtime')
export class ServerRuntime {
  @PrimaryColumn('uuid', { name: 'server_id', primaryKeyConstraintName: 'server_runtime_pk' })
  serverId: string;

  /** CASCADE: settings go with their server. */
  @OneToOne(() => Server, { nullable: false, onDelete: 'CASCADE' })
  @JoinColumn({ name: 'server_id', foreignKeyConstraintName: 'server_runtime_server_fk' })
  server: Relation<Server>;

  /** The only hosts its code may reach; null: any public one. */
  @Column('text', { name: 'egress_allow', array: true, nullable: true })
  egressAllow: string[] | null;

  /** Arguments and results are kept with its invocations, redacted. */
  @Column('boolean', { name: 'log_payloads', default: false })
  logPayloads: boolean;
}
