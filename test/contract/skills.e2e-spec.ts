import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import { APIError, Smithery, toFile } from '@smithery/api';
import { openZip } from '../../src/platform/zip/zip-archive.js';
import { testAccount, testApp, uniqueName, type TestApp } from '../support/app.js';
import { createNamespace } from '../support/factories.js';
import { startRepositoryHost, type RepositoryHost } from '../support/releases/repository-host.js';
import { skillMd } from '../support/releases/skills.js';
import { longVerifies, verifies } from '../support/verifies.js';
import { zipOf } from '../support/zips.js';

const app = testApp();
/** The same service with `PUBLIC_READS=true`: `skill view` sends no key. */
let open: TestApp;
let host: RepositoryHost;
const owner = testAccount(app);
/** Holds what the command line tool reads and writes. */
let folder: string;

beforeAll(async () => {
  [host, folder] = await Promise.all([startRepositoryHost(), mkdtemp(join(tmpdir(), 'slipway-cli-'))]);
  open = await app.sibling({ PUBLIC_READS: 'true' });
});
afterAll(async () => {
  await Promise.all([app?.close(), host?.close(), rm(folder, { recursive: true, force: true })]);
});

/** A repository on the host; returns its URL. */
async function repository(description: string): Promise<string> {
  const name = uniqueName('repo');
  host.serve(`/acme/${name}/archive/HEAD.zip`, await zipOf({ 'r/SKILL.md': skillMd({ description }) }));
  return `${host.url}/acme/${name}`;
}

describe('@smithery/api 0.68', () => {
  const client = () => new Smithery({ baseURL: app.url, apiKey: owner.key, maxRetries: 0 });

  verifies(
    ['skill:publish:upload', 'skill:read:record', 'skill:delete:deleted'],
    'uploads, gets, lists, downloads and deletes a skill',
    async () => {
      const namespace = await createNamespace(app, owner);
      const skills = client().skills;
      const content = await zipOf({ 'SKILL.md': skillMd(), 'a.txt': 'A' });
      const archive = () => toFile(content, 'archive.zip', { type: 'application/zip' });
      const uploaded = await skills.upload('review', { namespace, archive: await archive() });
      expect(uploaded).toMatchObject({ namespace, slug: 'review', gitUrl: null, listed: true });
      expect((await skills.upload('review', { namespace, archive: await archive() })).id).toBe(uploaded.id);
      await skills.upload('second', { namespace, archive: await archive() });

      expect(await skills.get('review', { namespace })).toMatchObject({ id: uploaded.id, owner: owner.id });
      const slugs: string[] = [];
      for await (const { slug } of skills.list({ namespace, q: 'review', pageSize: 1 })) slugs.push(slug);
      expect(slugs).toEqual(['review', 'second']);

      const download = await skills.download('review', { namespace });
      const zip = await openZip(Buffer.from(await download.arrayBuffer()), { entriesMax: 9, totalBytesMax: 9_000 });
      expect([...zip.entries.keys()]).toEqual(['SKILL.md', 'a.txt']);
      zip.close();

      expect(await skills.delete('review', { namespace })).toEqual({
        success: true,
        qualifiedName: `${namespace}/review`,
      });
      await expect(skills.get('review', { namespace })).rejects.toMatchObject({
        status: 404,
        error: { error: 'Skill not found' },
      });
    },
  );

  verifies(
    ['skill:publish:git', 'skill:publish:git-conflict', 'skill:publish:error-shape'],
    'sets, creates and syncs a skill from a repository, and reads the error',
    async () => {
      const namespace = await createNamespace(app, owner);
      const skills = client().skills;
      const gitUrl = await repository('First.');
      expect(await skills.set('review', { namespace, body: { gitUrl } })).toMatchObject({
        gitUrl,
        description: 'First.',
      });
      expect(await skills.sync('review', { namespace })).toMatchObject({ gitUrl, slug: 'review' });
      expect(await skills.create({ namespace, slug: 'other', gitUrl: await repository('Second.') })).toMatchObject({
        slug: 'other',
        description: 'Second.',
      });
      const refused: unknown = await skills
        .set('third', { namespace, body: { gitUrl } })
        .catch((error: unknown) => error);
      expect(refused).toBeInstanceOf(APIError);
      expect(refused).toMatchObject({ status: 409, error: { code: 'GIT_URL_CONFLICT' } });
    },
  );
});

interface Run {
  code: number;
  output: string;
}

/** Runs the published command line tool against this service and nothing else. */
function smithery(...args: string[]): Promise<Run> {
  const program = fileURLToPath(new URL('../../node_modules/@smithery/cli/dist/index.js', import.meta.url));
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    SMITHERY_BASE_URL: open.url,
    SMITHERY_CONNECT_BASE_URL: open.url,
    SMITHERY_URL: open.url,
    SMITHERY_API_KEY: owner.key,
    SMITHERY_CONFIG_PATH: join(folder, 'settings'),
  };
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [program, ...args], { env, timeout: 150_000 }, (error, output, errors) => {
      resolve({ code: error ? Number(error.code ?? -1) : 0, output: `${output}${errors}` });
    });
    child.stdin?.end();
  });
}

describe('@smithery/cli 4.11', () => {
  longVerifies(
    ['skill:publish:upload', 'skill:read:search', 'skill:install:routes', 'skill:read:anonymous'],
    'publishes a folder, finds it and shows its files',
    async () => {
      const namespace = await createNamespace(app, owner);
      const slug = uniqueName('skill');
      const skill = join(folder, slug);
      await mkdir(join(skill, 'references'), { recursive: true });
      await writeFile(join(skill, 'SKILL.md'), skillMd({ name: slug }, 'See references/more.md.'));
      await writeFile(join(skill, 'references', 'more.md'), '# More\n');
      const publish = () => smithery('skill', 'publish', skill, '--name', slug, '--namespace', namespace);
      expect(await publish()).toMatchObject({ code: 0 });
      expect(await publish()).toMatchObject({ code: 0 });

      const search = await smithery('skill', 'search', slug, '--json');
      expect(search).toMatchObject({ code: 0 });
      expect(search.output).toContain(`${namespace}/${slug}`);
      const view = await smithery('skill', 'view', `${namespace}/${slug}`);
      expect(view).toMatchObject({ code: 0, output: expect.stringContaining('See references/more.md.') });
      const file = await smithery('skill', 'view', `${namespace}/${slug}/references/more.md`);
      expect(file).toMatchObject({ code: 0, output: expect.stringContaining('# More') });
      const none = await smithery('skill', 'view', `${namespace}/none`);
      expect(none.code).not.toBe(0);
    },
  );

  longVerifies('skill:publish:error-shape', 'reports the problem with a skill', async () => {
    const namespace = await createNamespace(app, owner);
    const empty = join(folder, 'not-a-skill.zip');
    await writeFile(empty, await zipOf({ 'SKILL.md': '# Just text' }));
    const refused = await smithery('skill', 'publish', empty, '--name', 'broken', '--namespace', namespace);
    expect(refused.code).not.toBe(0);
    expect(refused.output).toContain('SKILL.md has no front matter');
  });
});
