import {
  Column,
  CreateDateColumn,
  Entity,
  Index,
  JoinColumn,
  ManyToOne,
  PrimaryGeneratedColumn,
  type Relation,
  OneToOne,
  PrimaryColumn,
} from 'typeorm';
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

/** A secret of a server, passed to its hosted code by name. The API never returns its value. */
@Entity('server_secrets')
@Index('server_secrets_name', ['serverId', 'name'], { unique: true })
export class ServerSecret {
  @PrimaryGeneratedColumn('uuid')
  id: string;

  @Column('uuid', { name: 'server_id' })
  serverId: string;

  /** CASCADE: secrets go with their server (Spec 4.11). */
  @ManyToOne(() => Server, { nullable: false, onDelete: 'CASCADE' })
  @JoinColumn({ name: 'server_id', foreignKeyConstraintName: 'server_secrets_server_fk' })
  server: Relation<Server>;

  @Column('text')
  name: string;

  /** Sealed by the vault for this row's id. */
  @Column('text', { name: 'sealed_value', select: false })
  sealedValue: string;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz', precision: 3 })
  createdAt: Date;
}
