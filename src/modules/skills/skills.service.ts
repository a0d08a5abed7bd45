import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository, type EntityManager, type SelectQueryBuilder } from 'typeorm';
import { isForeignKeyViolation, isUniqueViolation } from '../../platform/database/postgres-errors.js';
import { pageOf } from '../../platform/http/pagination.dto.js';
import { project } from '../../platform/http/input-values.js';
import { FairSemaphore } from '../../platform/limits/fair-semaphore.js';
import { AccessService } from '../auth/access.service.js';
import type { Caller, OwnedNamespace } from '../auth/access.types.js';
import { NamespaceNotFoundError } from '../namespaces/namespaces.errors.js';
import { GitArchives } from './git-archives.js';
import { parseGitUrl, type GitSource } from './git-source.js';
import { SkillFile } from './skill-file.entity.js';
import {
  readSkillPackage,
  REPOSITORY_LIMITS,
  UPLOAD_LIMITS,
  type PackagedFile,
  type SkillPackage,
} from './skill-package.js';
import type { SkillQueryDto } from './skill-query.dto.js';
import { isSkillRef, requireSlug, type SkillRef } from './skill-slug.js';
import type { CreateSkillDto, DeletedSkillDto, PublishedSkillDto, SkillDto, SkillListDto } from './skill.dto.js';
import { Skill } from './skill.entity.js';
import { toPublishedSkillDto, toSkillDto, toSkillSummaryDto } from './skill.mapper.js';
import { ownNamespace } from './skills.access.js';
import { GitUrlConflictError, NoGitUrlError, SkillNotFoundError } from './skills.errors.js';

/** Rows of files in one statement, and their bytes: a statement is in memory as often as it is handed on. */
const FILES_PER_INSERT = 50;
const BYTES_PER_INSERT = 2 * 1024 * 1024;

/** Publications unpacked and stored at once in this process: each may take 50 MB, several times over on its way. */
const PUBLICATIONS_MAX = 2;
const PUBLICATION_WAIT_MS = 30_000;

/** What typos are looked for in; the migration's index `skills_typos` is on this very expression. */
const TEXT = `(skill.slug || ' ' || skill.name || ' ' || skill.description)`;

/** Whole words before typos, then how well they fit, and how near the words are to slug and name. */
const SCORE =
  `(skill.search @@ websearch_to_tsquery('english', :q))::int + ` +
  `ts_rank(skill.search, websearch_to_tsquery('english', :q)) + word_similarity(:q, skill.slug || ' ' || skill.name)`;

/**
 * How much of a word must be alike. At Postgres' own 0.6 `postgers` (0.56), `migratoins` (0.55) and `reveiw` (0.43) do not
 * find what they mean; below 0.4 other words begin to be found.
 */
const LIKENESS_MIN = 0.4;

/** What a publication did. */
export interface Publication {
  /** False when there was a skill of this name, which it replaced. */
  created: boolean;
  skill: PublishedSkillDto;
}

/** Skills: searched, read, published from a repository or an archive, deleted. */
@Injectable()
export class SkillsService {
  private readonly slots = new FairSemaphore(PUBLICATIONS_MAX, PUBLICATION_WAIT_MS);

  constructor(
    @InjectRepository(Skill) private readonly skills: Repository<Skill>,
    private readonly repositories: GitArchives,
    private readonly access: AccessService,
  ) {}

  /** The best matches for `q`, or all, newest first; the rest of the query narrows both. */
  async list(query: SkillQueryDto): Promise<SkillListDto> {
    const q = query.q?.trim() || null;
    if (q === null) return this.page(query, q, this.skills.manager);
    return this.skills.manager.transaction(async (tx) => {
      await tx.query(`SET LOCAL pg_trgm.word_similarity_threshold = ${LIKENESS_MIN}`);
      return this.page(query, q, tx);
    });
  }

  /** @throws SkillNotFoundError */
  async get(ref: SkillRef): Promise<SkillDto> {
    return toSkillDto(await this.find(ref));
  }

  /**
   * Publishes a skill from a public repository, or again.
   *
   * @throws InvalidInputError, NoSlotError and what {@link GitArchives.fetch}, {@link readSkillPackage} and storing it throw
   */
  async publishFromGit(namespace: OwnedNamespace, slug: string, gitUrl: string): Promise<Publication> {
    requireSlug(slug);
    const source = parseGitUrl(gitUrl);
    const archive = await this.repositories.fetch(source.archives);
    return this.slots.run(namespace.id, async () => {
      const content = await readSkillPackage(archive, REPOSITORY_LIMITS, source.folder);
      return this.store(namespace, slug, content, source);
    });
  }

  /** {@link publishFromGit} into a namespace that the guard did not see. @throws NotSkillOwnerError besides */
  async create(caller: Caller, { namespace: name, slug, gitUrl }: CreateSkillDto): Promise<PublishedSkillDto> {
    const rule = { scope: 'skills:write', ...ownNamespace } as const;
    const { namespace } = await this.access.authorize(caller, rule, { owner: name });
    return (await this.publishFromGit(namespace as OwnedNamespace, slug, gitUrl)).skill;
  }

  /**
   * Publishes a skill from a zip of its folder, or again.
   *
   * @throws InvalidInputError, NoSlotError and what {@link readSkillPackage} and storing it throw
   */
  async publishFromArchive(namespace: OwnedNamespace, slug: string, archive: Buffer): Promise<Publication> {
    requireSlug(slug);
    return this.slots.run(namespace.id, async () =>
      this.store(namespace, slug, await readSkillPackage(archive, UPLOAD_LIMITS), null),
    );
  }

  /** Fetches a skill anew from where it came from. @throws SkillNotFoundError, NoGitUrlError */
  async sync(namespace: OwnedNamespace, slug: string): Promise<PublishedSkillDto> {
    const { gitUrl } = await this.find({ namespace: namespace.name, slug });
    if (gitUrl === null) throw new NoGitUrlError();
    return (await this.publishFromGit(namespace, slug, gitUrl)).skill;
  }

  /** Deletes a skill with its files. @throws SkillNotFoundError */
  async remove(namespace: OwnedNamespace, slug: string): Promise<DeletedSkillDto> {
    if (!isSkillRef({ namespace: namespace.name, slug })) throw new SkillNotFoundError();
    const { affected } = await this.skills.delete({ namespaceId: namespace.id, slug });
    if (!affected) throw new SkillNotFoundError();
    return { success: true, qualifiedName: `${namespace.name}/${slug}` };
  }

  private async find(ref: SkillRef): Promise<Skill> {
    const skill = isSkillRef(ref)
      ? await this.skills
          .createQueryBuilder('skill')
          .innerJoinAndSelect('skill.namespace', 'namespace')
          .addSelect('skill.prompt')
          .where('namespace.name = :namespace AND skill.slug = :slug', ref)
          .getOne()
      : null;
    if (!skill) throw new SkillNotFoundError();
    return skill;
  }

  private async page(query: SkillQueryDto, q: string | null, tx: EntityManager): Promise<SkillListDto> {
    const rows = filtered(query, q, tx);
    const count = await rows.getCount();
    const { offset, pagination } = pageOf(query, q === null ? count : Math.min(count, query.topK ?? count));
    if (offset === null) return { skills: [], pagination };
    if (q !== null) rows.addSelect(SCORE, 'score').orderBy('score', 'DESC');
    const { pageSize, totalCount } = pagination;
    rows.addOrderBy('skill.createdAt', 'DESC').addOrderBy('skill.id', 'DESC');
    rows.offset(offset).limit(Math.min(pageSize, totalCount - offset));
    const skills = (await rows.getMany()).map((skill) => project(toSkillSummaryDto(skill), query.fields));
    return { skills, pagination };
  }

  /**
   * Replaces row and files together. The upsert locks the row, so publications of one skill come one after another.
   *
   * @throws GitUrlConflictError, NamespaceNotFoundError when the namespace went away meanwhile
   */
  private async store(
    namespace: OwnedNamespace,
    slug: string,
    content: SkillPackage,
    source: GitSource | null,
  ): Promise<Publication> {
    try {
      return await this.skills.manager.transaction(async (tx) => {
        const { created, skill } = await upsert({ namespaceId: namespace.id, slug }, content, source, tx);
        await tx.delete(SkillFile, { skillId: skill.id });
        for (const files of inBatches(content.files)) {
          await tx.insert(
            SkillFile,
            files.map((file) => ({ skillId: skill.id, ...file })),
          );
        }
        return { created, skill: toPublishedSkillDto(namespace.name, skill) };
      });
    } catch (error) {
      if (isUniqueViolation(error)) throw new GitUrlConflictError();
      if (isForeignKeyViolation(error)) throw new NamespaceNotFoundError();
      throw error;
    }
  }
}

function* inBatches(files: PackagedFile[]): Generator<PackagedFile[]> {
  let batch: PackagedFile[] = [];
  let bytes = 0;
  for (const file of files) {
    bytes += file.content.length;
    if (batch.length === FILES_PER_INSERT || (batch.length > 0 && bytes > BYTES_PER_INSERT)) {
      yield batch;
      batch = [];
      bytes = file.content.length;
    }
    batch.push(file);
  }
  yield batch;
}

function filtered(query: SkillQueryDto, q: string | null, tx: EntityManager): SelectQueryBuilder<Skill> {
  const { category, namespace, slug, ownerId, verified } = query;
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
  { name, description, prompt, categories, servers, contentHash }: SkillPackage,
  source: GitSource | null,
  tx: EntityManager,
): Promise<{ created: boolean; skill: Skill }> {
  const git = { gitUrl: source?.gitUrl ?? null, gitSource: source?.key ?? null };
  const values = { name, description, prompt, categories, servers, contentHash, ...git };
  const { raw } = (await tx
    .createQueryBuilder()
    .insert()
    .into(Skill)
    .values({ ...key, ...values, updatedAt: () => 'clock_timestamp()' })
    .orUpdate(
      ['name', 'description', 'prompt', 'categories', 'servers', 'content_hash', 'git_url', 'git_source', 'updated_at'],
      ['namespace_id', 'slug'],
    )
    .returning('id, xmax = 0 AS created')
    .execute()) as { raw: { id: string; created: boolean }[] };
  const [{ id, created }] = raw as [(typeof raw)[number]];
  return { created, skill: await tx.findOneByOrFail(Skill, { id }) };
}
