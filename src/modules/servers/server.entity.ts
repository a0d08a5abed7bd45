import { Check, Column, CreateDateColumn, Entity, Index, JoinColumn, ManyToOne, PrimaryGeneratedColumn } from 'typeorm';
import type { Relation } from 'typeorm';
import { Namespace } from '../namespaces/namespace.entity.js';

/** A registry record, addressed by its qualified name: `namespace/name`, or `namespace` alone when the name is empty. */
@Entity('servers')
@Index('servers_qualified_name', ['namespaceId', 'name'], { unique: true })
@Check('servers_name', `"name" ~ '^([a-zA-Z0-9][a-zA-Z0-9_-]{2,38})?$'`)
export class Server {
  @PrimaryGeneratedColumn('uuid')
  id: string;

  @Column('uuid', { name: 'namespace_id' })
  namespaceId: string;

  /** RESTRICT: a namespace cannot go while it holds servers (Spec 4.13). */
  @ManyToOne(() => Namespace, { nullable: false, onDelete: 'RESTRICT' })
  @JoinColumn({ name: 'namespace_id', foreignKeyConstraintName: 'servers_namespace_fk' })
  namespace: Relation<Namespace>;

  /** The part behind the slash; empty for a namespace-only server. */
  @Column('text')
  name: string;

  @Column('text', { name: 'display_name' })
  displayName: string;

  @Column('text', { default: '' })
  description: string;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz', precision: 3 })
  createdAt: Date;
}
