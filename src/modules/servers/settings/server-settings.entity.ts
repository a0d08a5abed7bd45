import { Column, CreateDateColumn, Entity, Index, PrimaryGeneratedColumn, PrimaryColumn, ForeignKey } from 'typeorm';
import { Server } from '../server.entity.js';

/** Runtime settings of a server; without a row, it has the defaults. */
@Entity('server_runtime')
export class ServerRuntime {
  @ForeignKey(() => Server, { name: 'server_runtime_server_fk', onDelete: 'CASCADE' })
  @PrimaryColumn('uuid', { name: 'server_id', primaryKeyConstraintName: 'server_runtime_pk' })
  serverId: string;

  /** The only hosts that the code can reach; null: any public host. */
  @Column('text', { name: 'egress_allow', array: true, nullable: true })
  egressAllow: string[] | null;

  /** True if invocations store arguments and results, redacted. */
  @Column('boolean', { name: 'log_payloads', default: false })
  logPayloads: boolean;
}

/** A secret that hosted code receives by name. The API never returns its value. */
@Entity('server_secrets')
@Index('server_secrets_name', ['serverId', 'name'], { unique: true })
export class ServerSecret {
  @PrimaryGeneratedColumn('uuid')
  id: string;

  /** Id of the server, with which the row is deleted (Spec 4.11). */
  @ForeignKey(() => Server, { name: 'server_secrets_server_fk', onDelete: 'CASCADE' })
  @Column('uuid', { name: 'server_id' })
  serverId: string;

  @Column('text')
  name: string;

  /** Value, encrypted by the vault for this row's id. */
  @Column('text', { name: 'sealed_value', select: false })
  sealedValue: string;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz', precision: 3 })
  createdAt: Date;
}
