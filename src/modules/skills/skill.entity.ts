import {
  Check,
  Column,
  CreateDateColumn,
  Entity,
  Index,
  JoinColumn,
  ManyToOne,
  PrimaryGeneratedColumn,
  UpdateDateColumn,
  type Relation,
  PrimaryColumn,
} from 'typeorm';
import { Namespace } from '../namespaces/namespace.entity.js';

/**
 * The bytes are in the row, not in the blob store: skills are small, a publication replaces all files in one
 * transaction, and CASCADE removes them without a sweep.
 */
@Entity('skill_files')
export class SkillFile {
  @PrimaryColumn('uuid', { name: 'skill_id' })
  skillId: string;

  @ManyToOne(() => Skill, { nullable: false, onDelete: 'CASCADE' })
  @JoinColumn({ name: 'skill_id', foreignKeyConstraintName: 'skill_files_skill_fk' })
  skill: Relation<Skill>;

  /** Path relative to the directory of SKILL.md, with `/`. */
  @PrimaryColumn('text')
  path: string;

  @Column('bytea')
  content: Buffer;

  @Column('boolean', { name: 'is_executable' })
  isExecutable: boolean;
}

/** Instructions for agents, addressed by namespace and slug (Spec 2.7). */
@Entity('skills')
@Index('skills_qualified_name', ['namespaceId', 'slug'], { unique: true })
@Index('skills_newest', ['createdAt', 'id'])
@Index('skills_search', { synchronize: false })
@Index('skills_typos', { synchronize: false })
@Index('skills_categories', { synchronize: false })
@Check('skills_slug', `"slug" ~ '^[a-z0-9-]{1,64}$'`)
export class Skill {
  @PrimaryGeneratedColumn('uuid')
  id: string;

  @Column('uuid', { name: 'namespace_id' })
  namespaceId: string;

  /** Namespace that owns the skill (Spec 4.13). */
  @ManyToOne(() => Namespace, { nullable: false, onDelete: 'CASCADE' })
  @JoinColumn({ name: 'namespace_id', foreignKeyConstraintName: 'skills_namespace_fk' })
  namespace: Relation<Namespace>;

  @Column('text')
  slug: string;

  /** Name in the front matter, by which installers call the skill. */
  @Column('text')
  name: string;

  @Column('text')
  description: string;

  /** The content of SKILL.md after its front matter. Not selected by default, since it can have a megabyte. */
  @Column('text', { select: false })
  prompt: string;

  @Column('text', { array: true, default: '{}' })
  categories: string[];

  /** Qualified names of the MCP servers the skill uses. */
  @Column('text', { array: true, default: '{}' })
  servers: string[];

  /** The URL it was fetched from, as its owner wrote it; null for an upload. */
  @Column('text', { name: 'git_url', nullable: true })
  gitUrl: string | null;

  /** Repository and folder in normal form, unique among skills. */
  @Index('skills_git_source', { unique: true })
  @Column('text', { name: 'git_source', nullable: true })
  gitSource: string | null;

  /** SHA-256 over the paths and contents of all files. */
  @Column('text', { name: 'content_hash' })
  contentHash: string;

  /** Search document, which a trigger fills. */
  @Column('tsvector', { nullable: true, select: false })
  search: string | null;

  /** Number of downloads and of reads of SKILL.md. */
  @Column('integer', { name: 'total_activations', default: 0 })
  totalActivations: number;

  @CreateDateColumn({ name: 'created_at', type: 'timestamptz', precision: 3 })
  createdAt: Date;

  @UpdateDateColumn({ name: 'updated_at', type: 'timestamptz', precision: 3 })
  updatedAt: Date;
}
