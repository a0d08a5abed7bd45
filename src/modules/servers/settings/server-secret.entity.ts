import { Column, CreateDateColumn, Entity, Index, JoinColumn, ManyToOne, PrimaryGeneratedColumn } from 'typeorm';
import type { Relation } from 'typeorm';
import { Server } from '../server.entity.js';

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
