import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import { describe, expect, it } from '@jest/globals';
import { SkillFilesService } from '../../../src/modules/skills/skill-files.service.js';
import { UnavailableError } from '../../../src/platform/errors/domain-error.js';
import { longIt } from '../../support/jest/globals.mjs';
import { testAccount, testApp } from '../../support/app.js';
import { createNamespace } from '../../support/factories.js';
import { createSkill, skillMd, upload } from '../../support/releases/skills.js';
import { zipOf } from '../../support/zips.js';

const MB = 1024 * 1024;

const app = testApp();
const owner = testAccount(app);

describe('a skill that is published again while it is downloaded', () => {
  longIt('breaks the download off: no zip holds files of two versions', async () => {
    const names = Array.from({ length: 10 }, (_, n) => `${n}.bin`);
    const archive = (bytes: number) =>
      zipOf({ 'SKILL.md': skillMd(), ...Object.fromEntries(names.map((name) => [name, randomBytes(bytes)])) });
    const path = `/skills/${await createNamespace(app, owner)}/large`;
    expect((await upload(app, owner, path, await archive(2.2 * MB))).status).toBe(201);
    const request = http.get(`${app.url}${path}/download`, {
      headers: { authorization: `Bearer ${owner.key}` },
      agent: false,
    });
    const [answer] = (await once(request, 'response')) as [IncomingMessage];
    answer.pause();
    expect((await upload(app, owner, path, await archive(5))).status).toBe(200);
    const broken = once(answer, 'error');
    answer.resume();
    expect((await broken)[0]).toMatchObject({ code: 'ECONNRESET' });
    expect(answer.complete).toBe(false);
  });

  it('fails before its download starts, as a deleted one does', async () => {
    const { path, namespace, slug } = await createSkill(app, owner);
    const files = app.get(SkillFilesService);
    const bundle = await files.bundle({ namespace, slug });
    await upload(app, owner, path, await zipOf({ 'SKILL.md': skillMd({ name: 'other' }) }));
    await expect(bundle.open()).rejects.toBeInstanceOf(UnavailableError);
    const other = await files.bundle({ namespace, slug });
    await app.as(owner).delete(path);
    await expect(other.open()).rejects.toBeInstanceOf(UnavailableError);
  });
});
