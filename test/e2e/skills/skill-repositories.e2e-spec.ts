import { randomBytes } from 'node:crypto';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { testAccount, testApp, uniqueName } from '../../support/app.js';
import { createNamespace } from '../../support/factories.js';
import { startRepositoryHost, type RepositoryHost } from '../../support/releases/repository-host.js';
import { createSkill, skillMd } from '../../support/releases/skills.js';
import { until } from '../../support/until.js';
import { freePort } from '../../support/upstream/upstream-net.js';
import { verifies } from '../../support/verifies.js';
import { zipOf, type ZipContent } from '../../support/zips.js';

const app = testApp();
let host: RepositoryHost;
const owner = testAccount(app);
const other = testAccount(app);

beforeAll(async () => {
  host = await startRepositoryHost();
});

/** A new repository on the host that holds these files; returns its URL. */
async function repository(files: Record<string, ZipContent>, ref = 'HEAD'): Promise<string> {
  const name = uniqueName('repo');
  const inside = Object.entries(files).map(([path, content]) => [`${name}-0a1b2c/${path}`, content] as const);
  host.serve(`/acme/${name}/archive/${ref}.zip`, await zipOf(Object.fromEntries(inside)));
  return `${host.url}/acme/${name}`;
}

/** An address for a skill that is not there yet. */
async function freePath(account = owner): Promise<string> {
  return `/skills/${await createNamespace(app, account)}/review`;
}

describe('PUT /skills/{namespace}/{slug}', () => {
  verifies('skill:publish:git', 'publishes from a repository: 201 when new, 200 when replaced', async () => {
    const gitUrl = await repository({ 'SKILL.md': skillMd(), 'scripts/a.sh': 'x', '.github/x.yml': 'x' });
    const path = await freePath();
    const first = await app.as(owner).put(path, { gitUrl });
    expect(first.status).toBe(201);
    expect(first.body).toMatchObject({ slug: 'review', displayName: 'code-review', gitUrl, listed: true });
    expect((await app.as(other).get(path)).body).toMatchObject({ gitUrl, prompt: expect.stringContaining('# How') });
    const { body } = await app.as(owner).get(`${path}/.well-known/skills/index.json`);
    expect(body.skills[0].files).toEqual(['SKILL.md', 'scripts/a.sh']);

    const changed = await zipOf({ 'r/SKILL.md': skillMd({ description: 'Changed.' }) });
    host.serve(`${new URL(gitUrl).pathname}/archive/HEAD.zip`, changed);
    const second = await app.as(owner).put(path, { gitUrl: `${gitUrl}.git` });
    expect([second.status, second.body.description, second.body.id]).toEqual([200, 'Changed.', first.body.id]);
  });

  verifies('skill:publish:git', 'takes one folder of a repository, at a branch', async () => {
    const files = { 'skills/pdf/SKILL.md': skillMd({ name: 'pdf' }), 'skills/pdf/a.md': 'a', 'README.md': 'x' };
    const gitUrl = await repository({ ...files, 'skills/doc/SKILL.md': skillMd({ name: 'doc' }) }, 'dev');
    const path = await freePath();
    const response = await app.as(owner).put(path, { gitUrl: `${gitUrl}/src/branch/dev/skills/pdf` });
    expect([response.status, response.body.displayName]).toEqual([201, 'pdf']);
    const { body } = await app.as(owner).get(`${path}/.well-known/skills/index.json`);
    expect(body.skills[0].files).toEqual(['SKILL.md', 'a.md']);
  });

  verifies('skill:publish:git', 'follows redirects, as to the host that hands out the files', async () => {
    const real = await repository({ 'SKILL.md': skillMd() });
    const name = uniqueName('moved');
    host.serve(`/acme/${name}/archive/HEAD.zip`, `/acme/${name}/step`);
    host.serve(`/acme/${name}/step`, `${real}/archive/HEAD.zip`);
    const response = await app.as(owner).put(await freePath(), { gitUrl: `${host.url}/acme/${name}` });
    expect(response.status).toBe(201);
  });

  verifies('skill:publish:git-conflict', 'is 409 for a folder that is another skill already', async () => {
    const gitUrl = await repository({ 'SKILL.md': skillMd() });
    const taken = await freePath();
    expect((await app.as(owner).put(taken, { gitUrl })).status).toBe(201);
    const path = await freePath(other);
    const response = await app.as(other).put(path, { gitUrl: `${gitUrl}.git` });
    expect([response.status, response.body]).toEqual([
      409,
      { error: 'Git URL already claimed by another skill', code: 'GIT_URL_CONFLICT' },
    ]);
    expect(response.headers['x-should-retry']).toBe('false');
    expect((await app.as(other).get(path)).status).toBe(404);
    // Free again when that skill is gone.
    await app.as(owner).delete(taken);
    expect((await app.as(other).put(path, { gitUrl })).status).toBe(201);
  });

  verifies(['skill:publish:error-shape', 'skill:publish:skill-md'], 'names what is missing or invalid', async () => {
    const path = await freePath();
    const failure = async (gitUrl: string) => {
      const { status, body } = await app.as(owner).put(path, { gitUrl });
      return [status, body.code, body.error];
    };
    const hostname = new URL(host.url).host;
    expect(await failure(`${host.url}/acme/none`)).toEqual([
      404,
      'REPOSITORY_NOT_FOUND',
      `${hostname} answered 404 for the repository: check the URL, and that the repository is public`,
    ]);
    expect(await failure(await repository({ 'README.md': 'x' }))).toEqual([
      404,
      'SKILL_MD_NOT_FOUND',
      "There is no SKILL.md: put one at the top of the skill's folder",
    ]);
    const skill = await repository({ 'SKILL.md': skillMd() }, 'main');
    expect(await failure(`${skill}/tree/main/other`)).toEqual([
      404,
      'SKILL_MD_NOT_FOUND',
      'There is no SKILL.md in the folder "other"',
    ]);
    expect(await failure(await repository({ 'SKILL.md': 'text' }))).toEqual([
      422,
      'INVALID_SKILL_MD',
      expect.stringContaining('SKILL.md has no front matter'),
    ]);
    host.serve('/acme/login/archive/HEAD.zip', (_request, response) => response.end('<html>Sign in</html>'));
    expect(await failure(`${host.url}/acme/login`)).toEqual([
      502,
      'UPSTREAM_ERROR',
      `${hostname} answered with something that is not a zip file: check the URL, and that the repository is public`,
    ]);
    host.serve('/acme/broken/archive/HEAD.zip', (_request, response) => response.writeHead(500).end('x'));
    expect((await failure(`${host.url}/acme/broken`)).slice(0, 2)).toEqual([502, 'UPSTREAM_ERROR']);
    host.serve('/acme/torn/archive/HEAD.zip', (_request, response) => {
      response.writeHead(200, { 'content-length': 1_000 }).write('PK\x03\x04');
      response.destroy();
    });
    expect((await failure(`${host.url}/acme/torn`)).slice(0, 2)).toEqual([502, 'UPSTREAM_ERROR']);
    expect(await failure(`http://127.0.0.1:${await freePort()}/acme/away`)).toEqual([
      502,
      'UPSTREAM_ERROR',
      expect.stringContaining('could not be fetched from 127.0.0.1'),
    ]);
    expect((await app.as(owner).get(path)).status).toBe(404);
  });

  verifies('skill:publish:error-shape', 'refuses what is not an address of a repository', async () => {
    const path = await freePath();
    for (const body of [
      {},
      { gitUrl: 7 },
      { gitUrl: 'x' },
      { gitUrl: 'git@github.com:a/b.git' },
      { gitUrl: 'x'.repeat(1_001) },
    ]) {
      const response = await app.as(owner).put(path, body);
      expect([response.status, response.body.code]).toEqual([400, 'VALIDATION_ERROR']);
    }
    const secret = await app.as(owner).put(path, { gitUrl: `http://user:canary@127.0.0.1/a/b` });
    expect([secret.status, secret.text.includes('canary')]).toEqual([400, false]);
    const broken = app.as(owner).put(path).set('content-type', 'application/json');
    expect((await broken.send('{')).body).toEqual({ error: expect.stringMatching(/\S/), code: 'VALIDATION_ERROR' });
  });

  verifies('skill:publish:error-shape', 'needs a key and the namespace', async () => {
    const gitUrl = await repository({ 'SKILL.md': skillMd() });
    const path = await freePath();
    const before = host.asked.length;
    expect((await app.as().put(path, { gitUrl })).status).toBe(401);
    expect((await app.as(other).put(path, { gitUrl })).body).toEqual({
      error: "Forbidden: You don't own this namespace",
      code: 'FORBIDDEN',
    });
    expect((await app.as(other).put(`/skills/${uniqueName('ns')}/a`, { gitUrl })).status).toBe(404);
    expect((await app.as(owner).put(`${path}_`, { gitUrl })).status).toBe(400);
    expect(host.asked).toHaveLength(before);
  });
});

describe('the guard', () => {
  verifies('skill:publish:git-guarded', 'refuses private addresses, spelled or behind a redirect', async () => {
    const strict = await app.sibling({ EGRESS_ALLOW: '192.0.2.1' });
    try {
      const path = await freePath();
      const gitUrl = await repository({ 'SKILL.md': skillMd() });
      const before = host.asked.length;
      for (const url of [gitUrl, gitUrl.replace('127.0.0.1', 'localhost'), 'http://169.254.169.254/a/b']) {
        const response = await strict.as(owner).put(path, { gitUrl: url });
        expect([url, response.status, response.body.code]).toEqual([url, 400, 'VALIDATION_ERROR']);
        expect(response.body.error).toContain('does not dial');
      }
      expect(host.asked).toHaveLength(before);
    } finally {
      await strict.close();
    }
    for (const [n, target] of ['http://10.0.0.1/x.zip', 'http://169.254.169.254/', 'file:///etc/passwd'].entries()) {
      host.serve(`/acme/to-${n}/archive/HEAD.zip`, target);
      const response = await app.as(owner).put(await freePath(), { gitUrl: `${host.url}/acme/to-${n}` });
      expect([target, response.status, response.body.code]).toEqual([target, 400, 'VALIDATION_ERROR']);
    }
  });

  verifies('skill:publish:git-guarded', 'follows five redirects and no sixth', async () => {
    const zip = await zipOf({ 'r/SKILL.md': skillMd() });
    const chain = (name: string, length: number) => {
      host.serve(`/acme/${name}/archive/HEAD.zip`, `/${name}/1`);
      for (let n = 1; n < length; n += 1) host.serve(`/${name}/${n}`, `/${name}/${n + 1}`);
      host.serve(`/${name}/${length}`, zip);
      return `${host.url}/acme/${name}`;
    };
    expect((await app.as(owner).put(await freePath(), { gitUrl: chain('five', 5) })).status).toBe(201);
    const six = await app.as(owner).put(await freePath(), { gitUrl: chain('six', 6) });
    expect([six.status, six.body.error]).toEqual([502, expect.stringContaining('redirects more than 5 times')]);
  });

  verifies('skill:publish:git-guarded', 'stops reading an archive that is too large', async () => {
    let sent = 0;
    let isClosed = false;
    host.serve('/acme/huge/archive/HEAD.zip', (_request, response) => {
      response.on('close', () => (isClosed = true));
      response.writeHead(200).write('PK\x03\x04');
      const more = randomBytes(1024 * 1024);
      const pour = () => {
        for (let isFree = true; isFree && !isClosed; sent += 1) isFree = response.write(more);
      };
      response.on('drain', pour);
      pour();
    });
    const response = await app.as(owner).put(await freePath(), { gitUrl: `${host.url}/acme/huge` });
    expect([response.status, response.body.error]).toEqual([413, 'The repository is larger than 25 MB as a zip']);
    await until(() => isClosed, 'the socket is closed');
    expect(sent).toBeLessThan(60);
  });
});

describe('POST /skills', () => {
  verifies('skill:publish:git', 'publishes as PUT does, into a namespace named in the body', async () => {
    const gitUrl = await repository({ 'SKILL.md': skillMd() });
    const namespace = await createNamespace(app, owner);
    const body = { namespace, slug: 'review', gitUrl };
    const response = await app.as(owner).post('/skills', body);
    expect([response.status, response.body]).toEqual([
      200,
      expect.objectContaining({ ...body, displayName: 'code-review', listed: true }),
    ]);
    const foreign = await app.as(other).post('/skills', body);
    expect([foreign.status, foreign.body.code]).toEqual([403, 'FORBIDDEN']);
    const missing = await app.as(other).post('/skills', { ...body, namespace: uniqueName('ns') });
    expect(missing.status).toBe(404);
    expect(missing.body).toMatchObject({ error: 'Namespace not found', code: 'NOT_FOUND' });
    expect((await app.as(owner).post('/skills', { gitUrl })).status).toBe(400);
    expect((await app.as().post('/skills', body)).status).toBe(401);
  });
});

describe('POST …/sync', () => {
  verifies('skill:publish:git', 'fetches the skill again', async () => {
    const gitUrl = await repository({ 'SKILL.md': skillMd() });
    const path = await freePath();
    await app.as(owner).put(path, { gitUrl });
    const changed = await zipOf({ 'r/SKILL.md': skillMd({ description: 'Changed.' }) });
    host.serve(`${new URL(gitUrl).pathname}/archive/HEAD.zip`, changed);
    const response = await app.as(owner).post(`${path}/sync`);
    expect([response.status, response.body.description]).toEqual([200, 'Changed.']);
    expect((await app.as(other).post(`${path}/sync`)).status).toBe(403);
  });

  it('is 422 for an upload, 404 for no skill', async () => {
    const { namespace, path } = await createSkill(app, owner);
    const uploaded = await app.as(owner).post(`${path}/sync`);
    expect([uploaded.status, uploaded.body.code]).toEqual([422, 'NO_GIT_URL']);
    const none = await app.as(owner).post(`/skills/${namespace}/none/sync`);
    expect([none.status, none.body]).toEqual([404, { error: 'Skill not found', code: 'NOT_FOUND' }]);
  });
});
