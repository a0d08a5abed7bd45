import http from 'node:http';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { STALL_MS_MAX } from '../../../src/platform/http/stalled-reader.js';
import { testAccount, testApp } from '../../support/app.js';
import { bundleOf } from '../../support/releases/bundles.js';
import { createServer } from '../../support/factories.js';
import { images, uploadIcon } from '../../support/releases/icons.js';
import { published, releaseIn } from '../../support/releases/releases.js';
import { pathOf } from '../../support/database/server-rows.js';
import { createSkill } from '../../support/releases/skills.js';

const app = testApp();
const owner = testAccount(app);

afterEach(() => {
  jest.restoreAllMocks();
});

describe('a response that is a whole file', () => {
  const files: [what: string, make: () => Promise<string>][] = [
    ['a file of a skill', async () => `${(await createSkill(app, owner)).path}/.well-known/skills/SKILL.md`],
    ['a skill', async () => `${(await createSkill(app, owner)).path}/download`],
    [
      'an icon',
      async () => {
        const name = await createServer(app, owner);
        await uploadIcon(app, owner, name, images['image/png']);
        return pathOf(name, '/icon');
      },
    ],
    [
      'a bundle',
      async () => {
        const name = await createServer(app, owner);
        const bundle = await bundleOf();
        const id = await published(app, owner, name, { type: 'stdio', runtime: 'node' }, { bundle });
        await releaseIn(app, owner, name, id, 'SUCCESS');
        return pathOf(name, '/download');
      },
    ],
  ];

  it.each(files)('waits for its reader for 30 s at most: %s', async (_what, make) => {
    const path = await make();
    const limits = jest.spyOn(http.ServerResponse.prototype, 'setTimeout');
    expect((await app.as(owner).get(path)).status).toBe(200);
    expect(limits.mock.calls.map(([limitMs]) => limitMs)).toEqual([STALL_MS_MAX]);
  });
});
