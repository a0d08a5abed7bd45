import { Column, CreateDateColumn, Entity, Index, JoinColumn, ManyToOne, PrimaryGeneratedColumn } from 'typeorm';
import type { Relation } from 'typeorm';
import { Namespace } from '../namespaces/namespace.entity.js';

/** A sample note of a namespace, addressed by its name. */
@Entity('sample_notes')
@Index('sample_notes_name', ['namespaceId', 'name'], { unique: true })
export class SampleNote {
  @PrimaryGeneratedColumn('uuid', { primaryKeyConstraintName: 'sample_notes_pk' })
  id: string;

  @Column('uuid', { name: 'namespace_id' })
  namespaceId: string;

  /** CASCADE: sample notes go with their namespace. */
  @ManyToOne(() => Namespace, { nullable: false, onDelete: 'CASCADE' })
  @JoinColumn({ name: 'namespace_id', foreignKeyConstraintName: 'sample_notes_namespace_fk' })
  namespace: Relation<Namespace>;

  @Column('text')
  name: string;

  @Column('text')
  text: string;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz', precision: 3 })
  createdAt: Date;
}
