import { Column, Entity, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import type { Relation } from 'typeorm';
import { Skill } from './skill.entity.js';

/**
 * One file of a skill. The bytes are in the row, not in the blob store: skills are small, a publication replaces all files
 * in one transaction, and CASCADE removes them without a sweep.
 */
@Entity('skill_files')
export class SkillFile {
  @PrimaryColumn('uuid', { name: 'skill_id' })
  skillId: string;

  @ManyToOne(() => Skill, { nullable: false, onDelete: 'CASCADE' })
  @JoinColumn({ name: 'skill_id', foreignKeyConstraintName: 'skill_files_skill_fk' })
  skill: Relation<Skill>;

  /** Relative to the folder that holds SKILL.md, with `/`. */
  @PrimaryColumn('text')
  path: string;

  @Column('bytea')
  content: Buffer;

  @Column('boolean', { name: 'is_executable' })
  isExecutable: boolean;
}
