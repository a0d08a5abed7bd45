import { Check, Column, CreateDateColumn, Entity, Index, JoinColumn, ManyToOne, PrimaryGeneratedColumn } from 'typeorm';
import type { Relation } from 'typeorm';
import { Namespace } from '../namespaces/namespace.entity.js';
import type { ReleaseType, ServerSnapshot } from './server.types.js';

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

  /** Last segment of the run endpoint; `ns` or `ns--name` until its owner renames it. */
  @Index('servers_slug', { unique: true })
  @Column('text')
  slug: string;

  /** The release that is run, and what is known through it; all null before the first success. */
  @Column('uuid', { name: 'current_release_id', nullable: true })
  currentReleaseId: string | null;

  @Column('text', { name: 'current_type', nullable: true })
  currentType: ReleaseType | null;

  /** Not selected by default: lists do not need it, and a server may have a thousand tools. */
  @Column('jsonb', { nullable: true, select: false })
  snapshot: ServerSnapshot | null;

  /** Whether the newest scanned release passed the security check; null before the first scan. */
  @Column('boolean', { name: 'scan_passed', nullable: true })
  scanPassed: boolean | null;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz', precision: 3 })
  createdAt: Date;
}
