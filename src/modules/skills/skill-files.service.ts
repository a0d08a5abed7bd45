import { Readable } from 'node:stream';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository, type SelectQueryBuilder } from 'typeorm';
import { ZipFile } from 'yazl';
import { SkillActivations } from './skill-activations.js';
import { SkillFile } from './skill-file.entity.js';
import { isSkillRef, type SkillRef } from './skill-slug.js';
import type { SkillIndexDto } from './skill.dto.js';
import { Skill } from './skill.entity.js';
import { SkillFileNotFoundError, SkillNotFoundError, SkillReplacedError } from './skills.errors.js';

/** The same on every machine, so that the same skill is the same zip; the format begins in 1980. */
const ZIP_TIME = { mtime: new Date(1980, 0, 1), forceDosTimestamp: true };

/** A skill as one zip, not yet made. */
export interface SkillBundle {
  /** SHA-256 of what it holds. */
  contentHash: string;
  filename: string;
  /**
   * Makes it, file by file, and counts the download. A skill replaced meanwhile ends the stream with an error.
   *
   * @throws SkillReplacedError when it was replaced before that
   */
  open: () => Promise<Readable>;
}

/** What installers read: the files of a skill, one by one or together. */
@Injectable()
export class SkillFilesService {
  constructor(
    @InjectRepository(Skill) private readonly skills: Repository<Skill>,
    @InjectRepository(SkillFile) private readonly files: Repository<SkillFile>,
    private readonly activations: SkillActivations,
  ) {}

  /** @throws SkillNotFoundError */
  async index(ref: SkillRef): Promise<SkillIndexDto> {
    const { id, name, description } = await this.find(ref);
    return { skills: [{ name, description, files: (await this.entries(id)).map(({ path }) => path) }] };
  }

  /**
   * One file.
   *
   * @param path `SKILL.md`, or with the skill's name in front: `code-review/SKILL.md`
   * @throws SkillNotFoundError, SkillFileNotFoundError
   */
  async read(ref: SkillRef, path: string): Promise<{ path: string; content: Buffer }> {
    const { id, name } = await this.find(ref);
    const inside = path.startsWith(`${name}/`) ? path.slice(name.length + 1) : null;
    const long = inside === null ? null : await this.file(id, inside);
    const file = long ?? (await this.file(id, path));
    if (!file) throw new SkillFileNotFoundError();
    if (file.path === 'SKILL.md') this.activations.count(id);
    return { path: file.path, content: file.content };
  }

  /** Everything as one zip. @throws SkillNotFoundError */
  async bundle(ref: SkillRef): Promise<SkillBundle> {
    const { id, contentHash } = await this.find(ref);
    return { contentHash, filename: `${ref.slug}.zip`, open: () => this.pack(id, contentHash) };
  }

  private async pack(skillId: string, contentHash: string): Promise<Readable> {
    const files = await this.entries(skillId, contentHash);
    // Every publication has a SKILL.md.
    if (files.length === 0) throw new SkillReplacedError();
    this.activations.count(skillId);
    const zip = new ZipFile();
    const stream = zip.outputStream as Readable;
    zip.on('error', (error: Error) => stream.destroy(error));
    for (const { path, isExecutable } of files) {
      const mode = isExecutable ? 0o100755 : 0o100644;
      // One file in memory at a time: the next is asked for when this one is written.
      zip.addReadStreamLazy(path, { ...ZIP_TIME, mode }, (done) => {
        this.file(skillId, path, contentHash).then(
          (file) => (file ? done(null, Readable.from([file.content])) : done(new SkillReplacedError(), null!)),
          (error: Error) => done(error, null!),
        );
      });
    }
    zip.end();
    return stream;
  }

  private async find(ref: SkillRef): Promise<Skill> {
    const skill = isSkillRef(ref)
      ? await this.skills
          .createQueryBuilder('skill')
          .innerJoin('skill.namespace', 'namespace')
          .where('namespace.name = :namespace AND skill.slug = :slug', ref)
          .getOne()
      : null;
    if (!skill) throw new SkillNotFoundError();
    return skill;
  }

  private entries(skillId: string, contentHash?: string): Promise<Pick<SkillFile, 'path' | 'isExecutable'>[]> {
    return this.filesOf(skillId, contentHash)
      .select(['file.skillId', 'file.path', 'file.isExecutable'])
      .orderBy('file.path')
      .getMany();
  }

  private async file(skillId: string, path: string, contentHash?: string): Promise<SkillFile | null> {
    // Postgres refuses the character, and no file has one in its name.
    if (path.includes('\0')) return null;
    return this.filesOf(skillId, contentHash).andWhere('file.path = :path', { path }).getOne();
  }

  /** @param contentHash of the publication they must belong to; read with them, so that both are of one moment */
  private filesOf(skillId: string, contentHash?: string): SelectQueryBuilder<SkillFile> {
    const files = this.files.createQueryBuilder('file').where('file.skillId = :skillId', { skillId });
    if (contentHash === undefined) return files;
    return files.innerJoin('file.skill', 'skill', 'skill.contentHash = :contentHash', { contentHash });
  }
}
