import { Check, Column, Entity, Index, JoinColumn, ManyToOne, PrimaryColumn } from 'typeorm';
import type { Relation } from 'typeorm';
import { Release } from './release.entity.js';

/** The files a release may bring. */
export const artifactKinds = ['module', 'sourcemap', 'bundle'] as const;
export type ArtifactKind = (typeof artifactKinds)[number];

/** A file of a release, in the blob store. */
@Entity('release_artifacts')
@Check('release_artifacts_kind', `"kind" IN (${artifactKinds.map((kind) => `'${kind}'`).join(', ')})`)
export class ReleaseArtifact {
  @PrimaryColumn('uuid', { name: 'release_id' })
  releaseId: string;

  @PrimaryColumn('text')
  kind: ArtifactKind;

  @ManyToOne(() => Release, { nullable: false, onDelete: 'CASCADE' })
  @JoinColumn({ name: 'release_id', foreignKeyConstraintName: 'release_artifacts_release_fk' })
  release: Relation<Release>;

  /** Names the blob. */
  @Index('release_artifacts_hash')
  @Column('text')
  hash: string;

  @Column('integer')
  bytes: number;
}
