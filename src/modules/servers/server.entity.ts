import { Check, Column, CreateDateColumn, Entity, Index, JoinColumn, ManyToOne, PrimaryGeneratedColumn } from 'typeorm';
import type { Relation } from 'typeorm';
import { Namespace } from '../namespaces/namespace.entity.js';
import type { Visibility } from '../targets/target.types.js';
import type { ReleaseType, ServerSnapshot } from './server.types.js';
import type { Suspension } from '../auth/suspension.types.js';

/**
 * A registry record, addressed by its qualified name: `namespace/name`, or `namespace` alone when the name is empty.
 *
 * A trigger (in the migration) fills the columns `search…` from the server's descriptions and tool names, so that every spelling is found; their
 * GIN indexes and those of exact names are also hand-written there. Names and slugs are unique in lower case.
 */
@Entity('servers')
@Index('servers_qualified_name', { synchronize: false })
@Index('servers_slug', { synchronize: false })
// With columns that TypeORM cannot include: an index-only scan reads a page of the list.
@Index('servers_popular', { synchronize: false })
@Index('servers_verified', ['popularity', 'createdAt', 'id'], { where: 'NOT unlisted AND verified' })
@Index('servers_repository', ['repoOwner', 'repoName'])
@Index('servers_listed', { synchronize: false })
@Index('servers_exact_name', { synchronize: false })
@Index('servers_exact_title', { synchronize: false })
@Index('servers_search', { synchronize: false })
@Index('servers_search_names', { synchronize: false })
@Index('servers_search_words', { synchronize: false })
@Check('servers_visibility', `visibility IN ('public', 'restricted', 'private')`)
@Check('servers_name', `"name" ~ '^([a-zA-Z0-9][a-zA-Z0-9_-]{2,38})?$'`)
export class Server {
  @PrimaryGeneratedColumn('uuid')
  id: string;

  @Column('uuid', { name: 'namespace_id' })
  namespaceId: string;

  /** RESTRICT: a namespace cannot be deleted while it holds servers (Spec 4.13). */
  @ManyToOne(() => Namespace, { nullable: false, onDelete: 'RESTRICT' })
  @JoinColumn({ name: 'namespace_id', foreignKeyConstraintName: 'servers_namespace_fk' })
  namespace: Relation<Namespace>;

  /** Name within the namespace; empty for a namespace-only server. */
  @Column('text')
  name: string;

  @Column('text', { name: 'display_name' })
  displayName: string;

  @Column('text', { default: '' })
  description: string;

  /** Last segment of the run endpoint; `ns` or `ns--name` until its owner renames it. */
  @Column('text')
  slug: string;

  /** Time of the last change of the slug; null while the server has its first one. */
  @Column({ type: 'timestamptz', name: 'slug_changed_at', precision: 3, nullable: true })
  slugChangedAt: Date | null;

  @Column('text', { nullable: true })
  homepage: string | null;

  @Column('text', { name: 'repository_url', nullable: true })
  repositoryUrl: string | null;

  /** Owner of the repository, in lower case; null for a URL of another form. */
  @Column('text', { name: 'repo_owner', nullable: true })
  repoOwner: string | null;

  @Column('text', { name: 'repo_name', nullable: true })
  repoName: string | null;

  @Column('text', { name: 'backlink_url', nullable: true })
  backlinkUrl: string | null;

  @Column('text', { nullable: true })
  license: string | null;

  /** The URL of an external icon; an uploaded icon takes precedence. */
  @Column('text', { name: 'icon_url', nullable: true })
  iconUrl: string | null;

  /** True for a server outside of lists; anyone who knows its name can still read and use it. */
  @Column('boolean', { default: false })
  unlisted: boolean;

  /** `private`: only its owner and grantees can find it; others get 404. */
  @Column('text', { default: 'public' })
  visibility: Visibility;

  /** True if its owner confirmed, when it became public, that every caller uses its secrets. */
  @Column('boolean', { name: 'confirm_secrets', default: false })
  confirmSecrets: boolean;

  @Column('boolean', { default: false })
  verified: boolean;

  /** Counts connections to the server and calls of it. It is a string, since a bigint does not fit a number. */
  @Column('bigint', { name: 'use_count', default: 0 })
  useCount: string;

  /**
   * Four times the binary logarithm of `use_count + 1`, rounded down. Lists are sorted by it: it changes so rarely that counting uses
   * touches no index (Postgres updates the row in place), and pages stay stable.
   */
  @Column('smallint', { default: 0 })
  popularity: number;

  @Column({ type: 'tsvector', nullable: true, select: false, insert: false, update: false })
  search: string | null;

  /** Search text of the names and the display name. */
  @Column({ type: 'tsvector', name: 'search_names', nullable: true, select: false, insert: false, update: false })
  searchNames: string | null;

  /** Plain words, by which misspelt ones are found. */
  @Column({ type: 'text', name: 'search_words', nullable: true, select: false, insert: false, update: false })
  searchWords: string | null;

  /** The current release and its snapshot; null before the first success. */
  @Column('uuid', { name: 'current_release_id', nullable: true })
  currentReleaseId: string | null;

  @Column('text', { name: 'current_type', nullable: true })
  currentType: ReleaseType | null;

  /** Snapshot of the server, not selected by default: lists do not need it, and a server can have a thousand tools. */
  @Column('jsonb', { nullable: true, select: false })
  snapshot: ServerSnapshot | null;

  /** True if the newest scanned release passed the security check; null before the first scan. */
  @Column('boolean', { name: 'scan_passed', nullable: true })
  scanPassed: boolean | null;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz', precision: 3 })
  createdAt: Date;

  /** Set while the operator suspends it: calls are rejected. */
  @Column('jsonb', { nullable: true })
  suspended: Suspension | null;
}
