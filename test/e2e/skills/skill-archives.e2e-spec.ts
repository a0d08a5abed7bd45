import { randomBytes } from 'node:crypto';
import { afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { testAccount, testApp } from '../../support/app.js';
import { createNamespace } from '../../support/factories.js';
import { skillMd, upload } from '../../support/releases/skills.js';
import { verifies } from '../../support/verifies.js';
import { patchedRecords, recordField, renamed, zipOf, type ZipContent } from '../../support/zips.js';

const app = testApp();
const owner = testAccount(app);
/** Of a skill that is there and must stay as it is. */
let path: string;

const kept = { 'SKILL.md': skillMd({ description: 'Stays.' }), 'kept.txt': 'kept' };

beforeAll(async () => {
  path = `/skills/${await createNamespace(app, owner)}/review`;
  expect((await upload(app, owner, path, await zipOf(kept))).status).toBe(201);
});

// Whatever was refused: the skill before it is untouched, and the service answers.
afterEach(async () => {
  expect((await app.as(owner).get(path)).body.description).toBe('Stays.');
  const { body } = await app.as(owner).get(`${path}/.well-known/skills/index.json`);
  expect(body.skills[0].files).toEqual(['SKILL.md', 'kept.txt']);
});

/** Uploads what must be refused. */
async function refused(archive: Buffer): Promise<{ status: number; code: string; error: string }> {
  const { status, body } = await upload(app, owner, path, archive);
  expect(Object.keys(body as object).sort()).toEqual(['code', 'error']);
  return { status, ...(body as { code: string; error: string }) };
}

const withSkill = (files: Record<string, ZipContent> = {}) => zipOf({ 'SKILL.md': skillMd(), ...files });

describe('an uploaded archive', () => {
  const hostile: [string, () => Promise<Buffer>, string][] = [
    ['climbs', async () => renamed(await withSkill({ aaaaaaaaaaaa: 'x' }), 'aaaaaaaaaaaa', '../../escape'), 'path'],
    ['holds a link', () => withSkill({ link: { content: '/etc/passwd', mode: 0o120777 } }), 'link'],
    ['holds a bomb', () => withSkill({ 'zeros.bin': Buffer.alloc(20 * 1024 * 1024) }), 'bomb'],
    [
      'unpacks to too much',
      () => {
        // About a hundredth when packed, which alone is no sign of a bomb.
        const half = Buffer.alloc(26 * 1024 * 1024, randomBytes(2_000));
        return withSkill({ a: half, b: half });
      },
      'unpacks to more than 52428800 bytes',
    ],
    [
      'holds a file that is too large',
      () => withSkill({ 'a/b.bin': Buffer.alloc(5 * 1024 * 1024 + 1, randomBytes(2_000)) }),
      '"a/b.bin" is larger than 5 MB',
    ],
    [
      'holds too many files',
      () => withSkill(Object.fromEntries(Array.from({ length: 1_001 }, (_, n) => [`${n}.txt`, '']))),
      '1000',
    ],
    [
      'is encrypted',
      async () => patchedRecords(await withSkill(), (record) => record.writeUInt16LE(1, recordField.flags)),
      'encrypted',
    ],
    ['is not a zip file', () => Promise.resolve(Buffer.from('<html>Sign in</html>')), 'zip'],
    [
      'is damaged',
      async () => patchedRecords(await withSkill(), (record) => record.writeUInt32LE(7, recordField.checksum)),
      'damaged',
    ],
  ];

  for (const [what, make, word] of hostile) {
    verifies('skill:publish:hostile-archive', `is rejected when it ${what}`, async () => {
      const { status, code, error } = await refused(await make());
      expect([status, code]).toEqual([400, 'VALIDATION_ERROR']);
      expect(error).toContain(word);
    });
  }

  verifies('skill:publish:hostile-archive', 'is rejected above 25 MB', async () => {
    const { status, error } = await refused(Buffer.alloc(25 * 1024 * 1024 + 1));
    expect([status, error]).toEqual([413, 'The archive is larger than 25 MB']);
  });

  it('needs exactly one visible SKILL.md', async () => {
    for (const [files, word] of [
      [{ 'README.md': 'x' }, 'no SKILL.md'],
      [{ 'skill.md': skillMd() }, 'no SKILL.md'],
      [{ '.hidden/SKILL.md': skillMd() }, 'no SKILL.md'],
      [{ 'SKILL.md/': '' }, 'no SKILL.md'],
      [{ 'a/SKILL.md': skillMd(), 'b/SKILL.md': skillMd() }, 'several skills, "a/" and "b/"'],
    ] as [Record<string, string>, string][]) {
      const { status, code, error } = await refused(await zipOf(files));
      expect([status, code]).toEqual([404, 'SKILL_MD_NOT_FOUND']);
      expect(error).toContain(word);
    }
  });

  const wrong: [string, string | Buffer, string][] = [
    ['no front matter', '# Just text', 'has no front matter'],
    ['no description', '---\nname: a\n---\n', 'has no description'],
    ['a NUL that YAML spells', '---\nname: a\ndescription: "a\\0b"\n---\n', 'NUL'],
  ];

  for (const [what, content, problem] of wrong) {
    verifies(
      ['skill:publish:skill-md', 'skill:publish:hostile-archive'],
      `is rejected when its SKILL.md has ${what}`,
      async () => {
        const files = { 'SKILL.md': content, 'noise.bin': Buffer.from(Array.from({ length: 9_000 }, (_, n) => n * n)) };
        const { status, code, error } = await refused(await zipOf(files));
        expect([status, code]).toEqual([422, 'INVALID_SKILL_MD']);
        expect(error).toContain(`SKILL.md `);
        expect(error).toContain(problem);
      },
    );
  }
});
