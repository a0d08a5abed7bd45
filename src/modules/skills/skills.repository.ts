import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DataSource, type EntityManager, type SelectQueryBuilder } from 'typeorm';
import { AccountQuotas } from '../auth/account-quota.decorator.js';
import { SkillFile, Skill } from './skill.entity.js';
import type { PackagedFile } from './skill-package.js';
import type { SkillQueryDto } from './skill.dto.js';
import type { SkillRef } from './skills.access.js';

/** Expression of the index `skills_typos`. */
const TEXT = `(skill.slug || ' ' || skill.name || ' ' || skill.description)`;

/** Sort order: exact words before similar ones, then their rank, then their similarity to slug and name. */
const SCORE =
  `(skill.search @@ websearch_to_tsquery('english', :q))::int + ` +
  `ts_rank(skill.search, websearch_to_tsquery('english', :q)) + word_similarity(:q, skill.slug || ' ' || skill.name)`;

/**
 * Postgres' default of 0.6 misses `postgers` (0.56), `migratoins` (0.55) and `reveiw` (0.43); below 0.4 unrelated words
 * are found.
 */
const SIMILARITY_MIN = 0.4;

/** Filters of a search; `q` is null without words. */
export type SkillFilter = Pick<SkillQueryDto, 'category' | 'namespace' | 'slug' | 'ownerId' | 'verified'> & {
  q: string | null;
};

export type SkillContent = Pick<
  Skill,
  'name' | 'description' | 'prompt' | 'categories' | 'servers' | 'contentHash' | 'gitUrl' | 'gitSource'
>;

/** A listed skill, with its files in order and the SHA-256 of SKILL.md in hex. */
export type ListedSkill = Pick<Skill, 'id' | 'slug' | 'name' | 'description' | 'contentHash'> & {
  namespace: string;
  files: string[];
  digest: string;
};

@AccountQuotas({
  counts: {
    skills: `SELECT count(*) FROM namespaces n JOIN skills t ON t.namespace_id = n.id WHERE n.account_id = a.id`,
    skillsPerNamespace: 'SELECT count(*) FROM skills WHERE namespace_id = $1',
    skillBytes: `SELECT coalesce(sum(octet_length(f.content)), 0) FROM namespaces n JOIN skills s ON s.namespace_id = n.id
      JOIN skill_files f ON f.skill_id = s.id WHERE n.account_id = a.id`,
  },
})
@Injectable()
export class SkillsRepository {
  constructor(@InjectDataSource() private readonly database: DataSource) {}

  /** Finds a skill with its namespace and prompt; null if there is none. */
  find(ref: SkillRef): Promise<Skill | null> {
    return this.selectSkill(ref).addSelect('skill.prompt').getOne();
  }

  /** Finds a skill without its prompt; null if there is none. */
  findSummary(ref: SkillRef): Promise<Skill | null> {
    return this.selectSkill(ref).getOne();
  }

  /**
   * Lists the best matches first with `q`, otherwise the newest. `pageFor` selects the page from the number of matches;
   * null: none.
   */
  async search(
    filter: SkillFilter,
    pageFor: (count: number) => { offset: number; limit: number } | null,
  ): Promise<Skill[]> {
    return this.database.transaction(async (tx) => {
      await tx.query(`SET LOCAL pg_trgm.word_similarity_threshold = ${SIMILARITY_MIN}`);
      const rows = matching(filter, tx);
      const page = pageFor(await rows.getCount());
      if (page === null) return [];
      if (filter.q !== null) rows.addSelect(SCORE, 'score').orderBy('score', 'DESC');
      rows.addOrderBy('skill.createdAt', 'DESC').addOrderBy('skill.id', 'DESC');
      return rows.offset(page.offset).limit(page.limit).getMany();
    });
  }

  /**
   * Creates or replaces a skill. The upsert locks the row, so publications of one skill run sequentially.
   *
   * @throws QueryFailedError 23505 when another skill has its Git source, 23503 without its namespace
   */
  async replace(
    key: { namespaceId: string; slug: string },
    content: SkillContent,
    files: PackagedFile[],
  ): Promise<{ created: boolean; skill: Skill }> {
    return this.database.transaction(async (tx) => {
      const { id, created } = await upsert(key, content, tx);
      await tx.delete(SkillFile, { skillId: id });
      // One statement each: a statement is copied several times on its way, and a file can have 5 MB.
      for (const file of files) await tx.insert(SkillFile, { skillId: id, ...file });
      return { created, skill: await tx.findOneByOrFail(Skill, { id }) };
    });
  }

  /**
   * Lists skills with a valid name in the Agent Skills specification, newest first; if several share a name, only the
   * oldest, so that a new skill replaces no other.
   *
   * @param ref a namespace, a skill, or with neither all
   */
  async listIndexed({ namespace, slug, name }: Partial<SkillRef & { name: string }>): Promise<ListedSkill[]> {
    const values = [namespace, slug, name];
    // Postgres rejects NUL, and no stored name has one.
    if (values.some((value) => value?.includes('\0'))) return [];
    return this.database.query<ListedSkill[]>(
      `SELECT * FROM (
         SELECT DISTINCT ON (s.name) s.id, n.name AS namespace, s.slug, s.name, s.description,
           s.content_hash AS "contentHash", s.created_at,
           ARRAY(SELECT f.path FROM skill_files f WHERE f.skill_id = s.id ORDER BY f.path) AS files,
           (SELECT encode(sha256(f.content), 'hex') FROM skill_files f WHERE f.skill_id = s.id AND f.path = 'SKILL.md') AS digest
         FROM skills s JOIN namespaces n ON n.id = s.namespace_id
         WHERE ($1::text IS NULL OR n.name = $1) AND ($2::text IS NULL OR s.slug = $2) AND ($3::text IS NULL OR s.name = $3) AND s.name !~ '--'
         ORDER BY s.name, s.created_at, s.id) listed
       ORDER BY created_at DESC, id DESC`,
      values.map((value) => value ?? null),
    );
  }

  /** Lists the paths in order. @param contentHash only if this is still the skill's content */
  listFiles(skillId: string, contentHash?: string): Promise<Pick<SkillFile, 'path' | 'isExecutable'>[]> {
    return this.filesOf(skillId, contentHash)
      .select(['file.skillId', 'file.path', 'file.isExecutable'])
      .orderBy('file.path')
      .getMany();
  }

  /** Returns null if there is none. @param contentHash only if this is still the skill's content */
  async findFile(skillId: string, path: string, contentHash?: string): Promise<SkillFile | null> {
    // Postgres rejects NUL, and no stored path has one.
    if (path.includes('\0')) return null;
    return this.filesOf(skillId, contentHash).andWhere('file.path = :path', { path }).getOne();
  }

  async addActivations(counts: Map<string, number>): Promise<void> {
    await this.database.query(
      `UPDATE skills s SET total_activations = s.total_activations + c.uses
         FROM unnest($1::uuid[], $2::int[]) AS c(id, uses) WHERE s.id = c.id`,
      [[...counts.keys()], [...counts.values()]],
    );
  }

  private selectSkill(ref: SkillRef): SelectQueryBuilder<Skill> {
    return this.database.manager
      .createQueryBuilder(Skill, 'skill')
      .innerJoinAndSelect('skill.namespace', 'namespace')
      .where('namespace.name = :namespace AND skill.slug = :slug', { ...ref });
  }

  /** Selects files, and compares the hash in the same statement, so that a file and the hash belong to one publication. */
  private filesOf(skillId: string, contentHash?: string): SelectQueryBuilder<SkillFile> {
    const files = this.database.manager
      .createQueryBuilder(SkillFile, 'file')
      .where('file.skillId = :skillId', { skillId });
    if (contentHash === undefined) return files;
    return files.innerJoin('file.skill', 'skill', 'skill.contentHash = :contentHash', { contentHash });
  }
}

function matching(filter: SkillFilter, tx: EntityManager): SelectQueryBuilder<Skill> {
  const { q, category, namespace, slug, ownerId, verified } = filter;
  const rows = tx.createQueryBuilder(Skill, 'skill').innerJoinAndSelect('skill.namespace', 'namespace');
  if (q !== null) {
    rows.andWhere(`(skill.search @@ websearch_to_tsquery('english', :q) OR :q <% ${TEXT})`, { q });
  }
  if (category !== undefined) rows.andWhere('skill.categories @> ARRAY[:category]', { category });
  if (namespace !== undefined) rows.andWhere('namespace.name = :namespace', { namespace });
  if (slug !== undefined) rows.andWhere('skill.slug = :slug', { slug });
  if (ownerId !== undefined) rows.andWhere('namespace.accountId = :ownerId', { ownerId });
  if (verified === true) rows.andWhere('false');
  return rows;
}

async function upsert(
  key: { namespaceId: string; slug: string },
  content: SkillContent,
  tx: EntityManager,
): Promise<{ id: string; created: boolean }> {
  const { raw } = (await tx
    .createQueryBuilder()
    .insert()
    .into(Skill)
    .values({ ...key, ...content, updatedAt: () => 'clock_timestamp()' })
    .orUpdate(
      ['name', 'description', 'prompt', 'categories', 'servers', 'content_hash', 'git_url', 'git_source', 'updated_at'],
      ['namespace_id', 'slug'],
    )
    .returning('id, xmax = 0 AS created')
    .execute()) as { raw: [{ id: string; created: boolean }] };
  return raw[0];
}
