import { Readable } from 'node:stream';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type * as Yazl from 'yazl';
import { WriteBehind } from '../../platform/database/write-behind.js';
import { NotFoundError, UnavailableError } from '../../platform/errors/domain-error.js';
import { lazyRequire } from '../../platform/lazy-require.js';
import { isSkillRef, type SkillRef } from './skills.access.js';
import type { SkillIndexDto } from './skill.dto.js';
import type { Skill } from './skill.entity.js';
import { skillNotFoundError } from './skills.errors.js';
import { SkillsRepository } from './skills.repository.js';

const yazl = lazyRequire<typeof Yazl>('yazl');

/** A fixed time, so that the same skill gives the same zip; the format begins in 1980. */
const ZIP_TIME = { mtime: new Date(1980, 0, 1), forceDosTimestamp: true };

/** A skill as a zip that is made on demand. */
export interface SkillBundle {
  /** SHA-256 of its files. */
  contentHash: string;
  filename: string;
  /**
   * Makes the zip file by file and counts the download. The stream fails if the skill is replaced meanwhile.
   *
   * @throws UnavailableError when the skill was replaced before
   */
  open: () => Promise<Readable>;
}

/** Reads the files of skills for installers, one by one or as a zip. */
@Injectable()
export class SkillFilesService implements OnApplicationShutdown {
  private readonly activations = new WriteBehind<string, number>(
    'skill activations',
    (counts) => this.skills.addActivations(counts),
    { merge: (newer, older) => newer + older },
  );

  constructor(private readonly skills: SkillsRepository) {}

  async onApplicationShutdown(): Promise<void> {
    await this.activations.onApplicationShutdown();
  }

  /** The index of a skill's files. @throws NotFoundError */
  async index(ref: SkillRef): Promise<SkillIndexDto> {
    const { id, name, description } = await this.find(ref);
    return { skills: [{ name, description, files: (await this.skills.listFiles(id)).map(({ path }) => path) }] };
  }

  /**
   * Reads one file.
   *
   * @param path `SKILL.md`, or with the skill's name in front: `code-review/SKILL.md`
   * @throws NotFoundError
   */
  async read(ref: SkillRef, path: string): Promise<{ path: string; content: Buffer }> {
    const { id, name } = await this.find(ref);
    const inside = path.startsWith(`${name}/`) ? path.slice(name.length + 1) : null;
    const long = inside === null ? null : await this.skills.findFile(id, inside);
    const file = long ?? (await this.skills.findFile(id, path));
    if (!file) throw new NotFoundError('The skill holds no such file');
    if (file.path === 'SKILL.md') this.activations.set(id, 1);
    return { path: file.path, content: file.content };
  }

  /** All files as a zip. @throws NotFoundError */
  async bundle(ref: SkillRef): Promise<SkillBundle> {
    const { id, contentHash } = await this.find(ref);
    return { contentHash, filename: `${ref.slug}.zip`, open: () => this.pack(id, contentHash) };
  }

  private async pack(skillId: string, contentHash: string): Promise<Readable> {
    const files = await this.skills.listFiles(skillId, contentHash);
    // Every publication has a SKILL.md.
    if (files.length === 0) throw replaced();
    this.activations.set(skillId, 1);
    const zip = new (yazl().ZipFile)();
    const stream = zip.outputStream as Readable;
    zip.on('error', (error: Error) => stream.destroy(error));
    for (const { path, isExecutable } of files) {
      const mode = isExecutable ? 0o100755 : 0o100644;
      // One file in memory at a time: the next one is read when this one is written.
      zip.addReadStreamLazy(path, { ...ZIP_TIME, mode }, (done) => {
        this.skills.findFile(skillId, path, contentHash).then(
          (file) => (file ? done(null, Readable.from([file.content])) : done(replaced(), null!)),
          (error: Error) => done(error, null!),
        );
      });
    }
    zip.end();
    return stream;
  }

  private async find(ref: SkillRef): Promise<Skill> {
    const skill = isSkillRef(ref) ? await this.skills.findSummary(ref) : null;
    if (!skill) throw skillNotFoundError();
    return skill;
  }
}

function replaced(): UnavailableError {
  return new UnavailableError('The skill was published again meanwhile: download it again', 1);
}
