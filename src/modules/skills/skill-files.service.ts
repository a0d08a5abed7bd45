import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type * as Yazl from 'yazl';
import { Env } from '../../config/env.js';
import { WriteBehind } from '../../platform/database/write-behind.js';
import { NotFoundError, UnavailableError } from '../../platform/errors/domain-error.js';
import { lazyRequire } from '../../platform/lazy-require.js';
import { growingLru } from '../../platform/limits/growing-lru.js';
import { isSkillRef, type SkillRef } from './skills.access.js';
import type { SkillArtifactDto, SkillDiscoveryDto, SkillIndexDto } from './skill.dto.js';
import type { Skill, SkillFile } from './skill.entity.js';
import { skillNotFoundError } from './skills.errors.js';
import { SkillsRepository, type ListedSkill } from './skills.repository.js';

const yazl = lazyRequire<typeof Yazl>('yazl');

/** A fixed time, so that the same skill gives the same zip; the format starts in 1980. */
const ZIP_TIME = { mtime: new Date(1980, 0, 1), forceDosTimestamp: true };

type SkillFileContent = Pick<SkillFile, 'path' | 'content'>;

export interface SkillBundle {
  /** SHA-256 of its files. */
  contentHash: string;
  filename: string;
  /**
   * Counts the download. The stream fails if the skill is replaced meanwhile.
   *
   * @throws UnavailableError if the skill was already replaced
   */
  open: () => Promise<Readable>;
}

@Injectable()
export class SkillFilesService implements OnApplicationShutdown {
  private readonly activations = new WriteBehind<string, number>(
    'skill activations',
    (counts) => this.skillsRepository.addActivations(counts),
    { merge: (newer, older) => newer + older },
  );

  /** Digests by the hashes of the files. */
  private readonly digests = growingLru<Promise<string>>();

  constructor(
    private readonly skillsRepository: SkillsRepository,
    private readonly env: Env,
  ) {}

  async onApplicationShutdown(): Promise<void> {
    await this.activations.onApplicationShutdown();
  }

  /**
   * Returns the index of Agent Skills discovery 0.2.0. A digest is valid until the skill is published again.
   *
   * @param ref a namespace, a skill, or with neither all skills
   * @throws NotFoundError for a namespace without skills
   */
  async discover(ref: Partial<SkillRef>): Promise<SkillDiscoveryDto> {
    const skills: SkillArtifactDto[] = [];
    for (const skill of await this.requireListed(ref)) {
      const { namespace, slug, name, description, files } = skill;
      const base = `${this.env.baseUrl}/skills/${namespace}/${slug}`;
      const artifact =
        files.length === 1
          ? { type: 'skill-md' as const, url: `${base}/.well-known/skills/SKILL.md`, digest: skill.digest }
          : { type: 'archive' as const, url: `${base}/download`, digest: await this.archiveDigest(skill) };
      if (artifact.digest !== null)
        skills.push({ name, description, ...artifact, digest: `sha256:${artifact.digest}` });
    }
    return { $schema: 'https://schemas.agentskills.io/discovery/0.2.0/schema.json', skills };
  }

  /** Returns the index of version 0.1.0, with the same selection. @throws NotFoundError */
  async indexAll(ref: Partial<SkillRef>): Promise<SkillIndexDto> {
    const skills = await this.requireListed(ref);
    return { skills: skills.map(({ name, description, files }) => ({ name, description, files })) };
  }

  /** Reads a file of a skill by the name that an index of version 0.1.0 lists. @throws NotFoundError */
  async readNamed(namespace: string | undefined, name: string, path: string): Promise<SkillFileContent> {
    const [skill] = await this.skillsRepository.listIndexed({ namespace, name });
    if (!skill) throw skillNotFoundError();
    return this.read(skill, `${name}/${path}`);
  }

  private async requireListed(ref: Partial<SkillRef>): Promise<ListedSkill[]> {
    const skills = await this.skillsRepository.listIndexed(ref);
    if (skills.length === 0 && ref.namespace !== undefined) throw skillNotFoundError();
    return skills;
  }

  /** Returns the digest in hex, computed once per content; null if the skill was replaced. */
  private async archiveDigest({ id, contentHash }: ListedSkill): Promise<string | null> {
    const cached = this.digests.get(contentHash);
    if (cached) return cached;
    const computed = (async () => {
      const hash = createHash('sha256');
      for await (const chunk of await this.pack(id, contentHash)) hash.update(chunk as Buffer);
      return hash.digest('hex');
    })();
    this.digests.set(contentHash, computed);
    return computed.catch((error: unknown) => {
      this.digests.delete(contentHash);
      if (error instanceof UnavailableError) return null;
      throw error;
    });
  }

  /** @throws NotFoundError */
  async index(ref: SkillRef): Promise<SkillIndexDto> {
    const { id, name, description } = await this.find(ref);
    return {
      skills: [{ name, description, files: (await this.skillsRepository.listFiles(id)).map(({ path }) => path) }],
    };
  }

  /**
   * @param path `SKILL.md`, or with the skill's name as a prefix: `code-review/SKILL.md`
   * @throws NotFoundError
   */
  async read(ref: SkillRef, path: string): Promise<SkillFileContent> {
    const { id, name } = await this.find(ref);
    const inside = path.startsWith(`${name}/`) ? path.slice(name.length + 1) : null;
    const long = inside === null ? null : await this.skillsRepository.findFile(id, inside);
    const file = long ?? (await this.skillsRepository.findFile(id, path));
    if (!file) throw new NotFoundError('The skill holds no such file');
    if (file.path === 'SKILL.md') this.activations.set(id, 1);
    return { path: file.path, content: file.content };
  }

  /** @throws NotFoundError */
  async bundle(ref: SkillRef): Promise<SkillBundle> {
    const { id, contentHash } = await this.find(ref);
    return { contentHash, filename: `${ref.slug}.zip`, open: () => this.download(id, contentHash) };
  }

  private async download(skillId: string, contentHash: string): Promise<Readable> {
    const zip = await this.pack(skillId, contentHash);
    this.activations.set(skillId, 1);
    return zip;
  }

  private async pack(skillId: string, contentHash: string): Promise<Readable> {
    const files = await this.skillsRepository.listFiles(skillId, contentHash);
    // Every publication has a SKILL.md.
    if (files.length === 0) throw toReplacedError();
    const zip = new (yazl().ZipFile)();
    const stream = zip.outputStream as Readable;
    zip.on('error', (error: Error) => stream.destroy(error));
    for (const { path, isExecutable } of files) {
      const mode = isExecutable ? 0o100755 : 0o100644;
      // Keeps one file in memory at a time: the next one is read when this one is written.
      zip.addReadStreamLazy(path, { ...ZIP_TIME, mode }, (done) => {
        this.skillsRepository.findFile(skillId, path, contentHash).then(
          (file) => (file ? done(null, Readable.from([file.content])) : done(toReplacedError(), null!)),
          (error: Error) => done(error, null!),
        );
      });
    }
    zip.end();
    return stream;
  }

  private async find(ref: SkillRef): Promise<Skill> {
    const skill = isSkillRef(ref) ? await this.skillsRepository.findSummary(ref) : null;
    if (!skill) throw skillNotFoundError();
    return skill;
  }
}

function toReplacedError(): UnavailableError {
  return new UnavailableError('The skill was published again meanwhile: download it again', 1);
}
