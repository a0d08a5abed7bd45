import { randomBytes } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { longIt } from '../../../test/support/jest/globals.mjs';
import { skillMd } from '../../../test/support/releases/skills.js';
import { zipOf, type ZipContent } from '../../../test/support/zips.js';
import { readSkillPackage, REPOSITORY_LIMITS } from './skill-package.js';
import { TooLargeError } from '../../platform/errors/domain-error.js';

const MB = 1024 * 1024;

/** A repository with a skill of these files, and others beside it. */
async function skillOf(files: Record<string, ZipContent>, others: Record<string, ZipContent> = {}) {
  const within = Object.entries(files).map(([path, content]) => [`repo/skill/${path}`, content] as const);
  const archive = await zipOf({ 'repo/skill/SKILL.md': skillMd(), ...Object.fromEntries(within), ...others });
  return readSkillPackage(archive, REPOSITORY_LIMITS, 'skill');
}

function many(count: number, path: (i: number) => string, content: (i: number) => ZipContent = () => 'x') {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [path(i), content(i)]));
}

describe('a skill of a repository', () => {
  longIt('holds 1,000 files and not one more, whatever other folders contain', async () => {
    const beside = many(50, (i) => `repo/other/${i}.md`);
    expect(
      (
        await skillOf(
          many(999, (i) => `${i}.md`),
          beside,
        )
      ).files,
    ).toHaveLength(1_000);
    await expect(skillOf(many(1_000, (i) => `${i}.md`))).rejects.toBeInstanceOf(TooLargeError);
  });

  it('is checked alone: links and bombs outside of it are ignored, those inside reject it', async () => {
    const link = { content: 'AGENTS.md', mode: 0o120777 };
    const zeros = Buffer.alloc(3 * MB);
    const beside = { 'repo/CLAUDE.md': link, 'repo/fixtures/zeros.bin': zeros };
    expect((await skillOf({ 'a.md': 'x' }, beside)).files.map(({ path }) => path)).toEqual(['SKILL.md', 'a.md']);
    await expect(skillOf({ 'a.md': link })).rejects.toThrow('a link');
    await expect(skillOf({ 'zeros.bin': zeros })).rejects.toThrow('zip bomb');
  });

  longIt('holds 50 MB of files at most', async () => {
    // Mostly zeros, which are quick to pack, with enough else that it is not a zip bomb.
    const block = Buffer.concat([randomBytes(MB / 8), Buffer.alloc(5 * MB - MB / 8)]);
    const files = (count: number) =>
      many(
        count,
        (i) => `${i}.bin`,
        () => block,
      );
    expect((await skillOf(files(9))).files).toHaveLength(10);
    await expect(skillOf(files(10))).rejects.toBeInstanceOf(TooLargeError);
  });

  it.each([
    [['a.txt', 'A.txt'], 'are one file on systems'],
    [['docs/\u00e9.md', 'docs/e\u0301.md'], 'are one file on systems'],
    [['gnp\u202ecod.md'], 'turns the direction of text'],
    [['a\u0085.md'], 'control character'],
  ])('holds no files %j', async (paths, words) => {
    await expect(skillOf(Object.fromEntries(paths.map((path) => [path, 'x'])))).rejects.toThrow(words);
  });

  it('contains no file over 5 MB', async () => {
    const refused = skillOf({ 'large.bin': Buffer.concat([randomBytes(MB / 8), Buffer.alloc(5 * MB)]) });
    await expect(refused).rejects.toThrow('"large.bin" is larger than 5 MB');
  });
});
