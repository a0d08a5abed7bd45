import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { onViolation } from '../../platform/database/postgres-errors.js';
import { pageOf } from '../../platform/http/pagination.dto.js';
import { project } from '../../platform/http/input-values.js';
import { KeyedLimiter } from '../../platform/limits/keyed-limiter.js';
import { AccountLimitsService } from '../auth/account-limits.service.js';
import { AccessService } from '../auth/access.service.js';
import type { Caller, OwnedNamespace } from '../auth/access.types.js';
import { NamespaceNotFoundError } from '../namespaces/namespaces.errors.js';
import { GitArchives, parseGitUrl, type GitSource } from './git-source.js';
import { readSkillPackage, REPOSITORY_LIMITS, UPLOAD_LIMITS, type SkillPackage } from './skill-package.js';
import type {
  SkillQueryDto,
  CreateSkillDto,
  DeletedSkillDto,
  PublishedSkillDto,
  SkillDto,
  SkillListDto,
  SkillSummaryDto,
} from './skill.dto.js';
import { isSkillRef, requireSlug, type SkillRef, ownNamespace } from './skills.access.js';
import { Skill } from './skill.entity.js';
import { skillNotFoundError, SkillPublishError } from './skills.errors.js';
import { SkillsRepository } from './skills.repository.js';

/** Concurrent publications in this process, each with up to 75 MB; a namespace and a host can each have half of them. */
const PUBLICATIONS_MAX = 4;
const PUBLICATION_WAIT_MS = 30_000;

/** Members that Slipway does not measure: zero and false, since the contract requires them. */
const unmeasured = { qualityScore: 0, verified: false, externalStars: 0, externalForks: 0, uniqueUsers: 0 };

export interface Publication {
  /** False if an existing skill was replaced. */
  created: boolean;
  skill: PublishedSkillDto;
}

@Injectable()
export class SkillsService {
  private readonly slots = KeyedLimiter.fair(PUBLICATIONS_MAX, PUBLICATION_WAIT_MS);

  constructor(
    @InjectRepository(Skill) private readonly skillRepository: Repository<Skill>,
    private readonly skillsRepository: SkillsRepository,
    private readonly gitArchives: GitArchives,
    private readonly accessService: AccessService,
    private readonly accountLimitsService: AccountLimitsService,
  ) {}

  /** Lists the best matches for `q`; without it, the newest skills first. */
  async list(query: SkillQueryDto): Promise<SkillListDto> {
    const q = query.q?.trim() || null;
    let pagination = pageOf(query, 0).pagination;
    const rows = await this.skillsRepository.search({ ...query, q }, (count) => {
      const page = pageOf(query, q === null ? count : Math.min(count, query.topK ?? count));
      pagination = page.pagination;
      const { pageSize, totalCount } = pagination;
      return page.offset === null ? null : { offset: page.offset, limit: Math.min(pageSize, totalCount - page.offset) };
    });
    return { skills: rows.map((skill) => project(toSkillSummaryDto(skill), query.fields)), pagination };
  }

  /** @throws NotFoundError */
  async get(ref: SkillRef): Promise<SkillDto> {
    const skill = await this.find(ref);
    return { ...toSkillSummaryDto(skill), prompt: skill.prompt, owner: skill.namespace.accountId };
  }

  /**
   * Replaces an earlier version.
   *
   * @throws InvalidInputError, NoSlotError and the errors of {@link GitArchives.fetch}, {@link readSkillPackage} and
   * {@link store}
   */
  async publishFromGit(namespace: OwnedNamespace, slug: string, gitUrl: string): Promise<Publication> {
    requireSlug(slug);
    const source = parseGitUrl(gitUrl);
    return this.slots.run([namespace.id, source.archives[0].host], async () => {
      const archive = await this.gitArchives.fetch(source.archives);
      return this.store(namespace, slug, await readSkillPackage(archive, REPOSITORY_LIMITS, source.folder), source);
    });
  }

  /** Creates a skill. Checks the namespace in the body, which the guard does not. @throws as {@link publishFromGit}, and ForbiddenError */
  async create(caller: Caller, { namespace: name, slug, gitUrl }: CreateSkillDto): Promise<PublishedSkillDto> {
    const rule = { scope: 'skills:write', ...ownNamespace } as const;
    const { namespace } = await this.accessService.authorize(caller, rule, { owner: name });
    return (await this.publishFromGit(namespace as OwnedNamespace, slug, gitUrl)).skill;
  }

  /**
   * Replaces an earlier version.
   *
   * @throws InvalidInputError, NoSlotError and the errors of {@link readSkillPackage} and {@link store}
   */
  async publishFromArchive(namespace: OwnedNamespace, slug: string, archive: Buffer): Promise<Publication> {
    requireSlug(slug);
    return this.slots.run(namespace.id, async () =>
      this.store(namespace, slug, await readSkillPackage(archive, UPLOAD_LIMITS), null),
    );
  }

  /** Fetches the skill from its Git URL. @throws NotFoundError, SkillPublishError */
  async sync(namespace: OwnedNamespace, slug: string): Promise<PublishedSkillDto> {
    const { gitUrl } = await this.find({ namespace: namespace.name, slug });
    if (gitUrl === null) {
      const message = 'The skill was uploaded and has no Git URL: upload it again instead';
      throw new SkillPublishError('unprocessable', 'no_git_url', message);
    }
    return (await this.publishFromGit(namespace, slug, gitUrl)).skill;
  }

  /** @throws NotFoundError */
  async remove(namespace: OwnedNamespace, slug: string): Promise<DeletedSkillDto> {
    if (!isSkillRef({ namespace: namespace.name, slug })) throw skillNotFoundError();
    const { affected } = await this.skillRepository.delete({ namespaceId: namespace.id, slug });
    if (!affected) throw skillNotFoundError();
    return { success: true, qualifiedName: `${namespace.name}/${slug}` };
  }

  private async find(ref: SkillRef): Promise<Skill> {
    const skill = isSkillRef(ref) ? await this.skillsRepository.find(ref) : null;
    if (!skill) throw skillNotFoundError();
    return skill;
  }

  /** @throws SkillPublishError (409), NamespaceNotFoundError when the namespace was deleted meanwhile */
  private async store(
    namespace: OwnedNamespace,
    slug: string,
    content: SkillPackage,
    source: GitSource | null,
  ): Promise<Publication> {
    const { files, name, description, prompt, categories, servers, contentHash } = content;
    const git = { gitUrl: source?.gitUrl ?? null, gitSource: source?.key ?? null };
    const row = { name, description, prompt, categories, servers, contentHash, ...git };
    const key = { namespaceId: namespace.id, slug };
    const isNew = !(await this.skillRepository.existsBy(key));
    const skillBytes = files.reduce((sum, file) => sum + file.content.length, 0);
    const quotas = { skillBytes, ...(isNew && { skills: 1, skillsPerNamespace: 1 }) };
    const toConflict = () =>
      new SkillPublishError('conflict', 'git_url_conflict', 'Git URL already claimed by another skill');
    const { created, skill } = await this.accountLimitsService
      .createWithinQuota({ namespaceId: namespace.id }, quotas, () => this.skillsRepository.replace(key, row, files))
      .catch(onViolation({ unique: toConflict, foreignKey: () => new NamespaceNotFoundError() }));
    const published = {
      id: skill.id,
      namespace: namespace.name,
      slug: skill.slug,
      displayName: skill.name,
      description: skill.description,
      gitUrl: skill.gitUrl,
      externalStars: unmeasured.externalStars,
      listed: true,
      createdAt: skill.createdAt.toISOString(),
      updatedAt: skill.updatedAt.toISOString(),
    };
    return { created, skill: published };
  }
}

/** @param skill with its namespace */
function toSkillSummaryDto(skill: Skill): SkillSummaryDto {
  return {
    id: skill.id,
    namespace: skill.namespace.name,
    slug: skill.slug,
    displayName: skill.name,
    description: skill.description,
    prompt: null,
    ...unmeasured,
    listed: true,
    createdAt: skill.createdAt.toISOString(),
    totalActivations: skill.totalActivations,
    categories: skill.categories,
    servers: skill.servers,
    gitUrl: skill.gitUrl,
  };
}
