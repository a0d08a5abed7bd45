import { createHash } from 'node:crypto';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { testAccount, testApp, uniqueName, type TestApp } from '../../support/app.js';
import { createNamespace } from '../../support/factories.js';
import { createSkill, skillMd, upload } from '../../support/releases/skills.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';
import { zipOf } from '../../support/zips.js';

const isoUtc = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const notFound = { error: 'Skill not found' };
const noKey = expect.objectContaining({ error: 'Unauthorized' });

const app = testApp();
/** The same service with `PUBLIC_READS=true`. */
let open: TestApp;
const owner = testAccount(app);
const other = testAccount(app);

beforeAll(async () => {
  open = await app.sibling({ PUBLIC_READS: 'true' });
});

async function slugsFound(query: string): Promise<string[]> {
  const { body } = await app.as(owner).get(`/skills?${query}`);
  return body.skills.map(({ slug }: { slug: string }) => slug);
}

/** Rows of files in the whole database. */
async function filesStored(): Promise<number> {
  const [row] = await app.database.query('SELECT count(*)::int AS count FROM skill_files');
  return row.count;
}

describe('PUT /skills/{namespace}/{slug}/upload', () => {
  verifies(
    ['skill:publish:upload', 'skill:identified-by-slug', 'namespace:owns:skills'],
    'publishes a zip: 201 for a new skill, 200 for a replaced one',
    async () => {
      const namespace = await createNamespace(app, owner);
      const path = `/skills/${namespace}/review`;
      const first = await upload(app, owner, path, await zipOf({ 'SKILL.md': skillMd(), 'a.txt': 'A' }));
      expect(first.status).toBe(201);
      expect(first.body).toEqual({
        id: expect.stringMatching(uuid),
        namespace,
        slug: 'review',
        displayName: 'code-review',
        description: 'Reviews a change. Use it before a merge.',
        gitUrl: null,
        externalStars: 0,
        listed: true,
        createdAt: expect.stringMatching(isoUtc),
        updatedAt: expect.stringMatching(isoUtc),
      });
      const second = await upload(app, owner, path, await zipOf({ 'SKILL.md': skillMd({ name: 'other' }) }));
      expect(second.status).toBe(200);
      expect(second.body).toEqual({ ...first.body, displayName: 'other', updatedAt: expect.stringMatching(isoUtc) });
      expect(second.body.updatedAt > first.body.updatedAt).toBe(true);
      const index = await app.as(owner).get(`${path}/.well-known/skills/index.json`);
      expect(index.body.skills[0].files).toEqual(['SKILL.md']);
    },
  );

  verifies('skill:publish:upload', 'takes the folder itself, and only what belongs to the skill', async () => {
    const namespace = await createNamespace(app, owner);
    const archive = await zipOf({
      'review/': '',
      'review/SKILL.md': skillMd(),
      'review/scripts/run.sh': { content: '#!/bin/sh\n', mode: 0o100755 },
      'review/.env.example': 'A=1',
      'review/.git/config': 'x',
      'review/node_modules/a/index.js': 'x',
      'README.md': 'x',
      '__MACOSX/review/SKILL.md': 'x',
    });
    expect((await upload(app, owner, `/skills/${namespace}/review`, archive)).status).toBe(201);
    const { body } = await app.as(owner).get(`/skills/${namespace}/review/.well-known/skills/index.json`);
    expect(body.skills[0].files).toEqual(['.env.example', 'SKILL.md', 'scripts/run.sh']);
  });

  verifies(
    'skill:publish:error-shape',
    'refuses a form without the archive, and a body that is not a form',
    async () => {
      const namespace = await createNamespace(app, owner);
      const path = `/skills/${namespace}/review/upload`;
      const bad = { error: expect.stringMatching(/\S/), code: 'VALIDATION_ERROR' };
      const wrongPart = await app.as(owner).put(path).attach('file', Buffer.from('x'), 'a.zip');
      expect([wrongPart.status, wrongPart.body]).toEqual([
        400,
        { ...bad, error: 'The part "file" is not known: the form takes archive' },
      ]);
      const text = await app.as(owner).put(path).field('archive', 'text');
      expect([text.status, text.body]).toEqual([400, bad]);
      const json = await app.as(owner).put(path, { archive: 'x' });
      const advice = 'Send the body as multipart/form-data with a boundary';
      expect([json.status, json.body]).toEqual([400, { ...bad, error: advice }]);
      const none = await app.as(owner).put(path);
      expect([none.status, none.body]).toEqual([400, bad]);
    },
  );

  it('rejects an invalid slug', async () => {
    const namespace = await createNamespace(app, owner);
    for (const slug of ['Review', 'a_b', 'a.b', `${'a'.repeat(65)}`, '%C3%A4', '%00', 'a%2Fb']) {
      const response = await upload(app, owner, `/skills/${namespace}/${slug}`, await zipOf({ 'SKILL.md': skillMd() }));
      expect([slug, response.status, response.body.code]).toEqual([slug, 400, 'VALIDATION_ERROR']);
    }
  });

  verifies('skill:publish:error-shape', 'needs a key', async () => {
    const namespace = await createNamespace(app, owner);
    for (const service of [app, open]) {
      const response = await service.as().put(`/skills/${namespace}/review/upload`);
      expect([response.status, response.body]).toEqual([
        401,
        expect.objectContaining({ error: 'Unauthorized', code: 'UNAUTHORIZED' }),
      ]);
    }
  });

  verifies(
    ['skill:publish:error-shape', 'namespace:owns:skills'],
    'is 403 in a foreign namespace, 404 in a missing one',
    async () => {
      const namespace = await createNamespace(app, owner);
      const archive = await zipOf({ 'SKILL.md': skillMd() });
      const foreign = await upload(app, other, `/skills/${namespace}/review`, archive);
      expect([foreign.status, foreign.body]).toEqual([
        403,
        { error: "Forbidden: You don't own this namespace", code: 'FORBIDDEN' },
      ]);
      expect((await app.as(owner).get(`/skills/${namespace}/review`)).status).toBe(404);
      const missing = await upload(app, other, `/skills/${uniqueName('ns')}/review`, archive);
      expect(missing.status).toBe(404);
      expect(missing.body).toMatchObject({ error: 'Namespace not found', code: 'NOT_FOUND' });
    },
  );

  verifies('skill:publish:hostile-archive', 'leaves the files of one of many concurrent publications', async () => {
    const namespace = await createNamespace(app, owner);
    const path = `/skills/${namespace}/review`;
    const archives = await Promise.all(
      [1, 2, 3, 4].map((n) => zipOf({ 'SKILL.md': skillMd({ description: `Number ${n}.` }), [`${n}.txt`]: 'x' })),
    );
    const statuses = (await Promise.all(archives.map((archive) => upload(app, owner, path, archive)))).map(
      ({ status }) => status,
    );
    expect(statuses.sort()).toEqual([200, 200, 200, 201]);
    const { description } = (await app.as(owner).get(path)).body;
    const { body } = await app.as(owner).get(`${path}/.well-known/skills/index.json`);
    expect(body.skills[0].files).toEqual([`${/\d/.exec(description)?.[0]}.txt`, 'SKILL.md']);
  });
});

describe('GET /skills/{namespace}/{slug}', () => {
  verifies('skill:read:record', 'returns every field, to other accounts too', async () => {
    const { path, namespace, slug, body } = await createSkill(app, owner, {
      metadata: { categories: ['code', 'quality'], servers: 'acme/github, acme/ci' },
    });
    const response = await app.as(other).get(path);
    expect(response.status).toBe(200);
    expect(response.body).toEqual({
      id: body.id,
      namespace,
      slug,
      displayName: 'code-review',
      description: 'Reviews a change. Use it before a merge.',
      prompt: '# How\n\nRead the whole change first.',
      qualityScore: 0,
      externalStars: 0,
      externalForks: 0,
      totalActivations: 0,
      uniqueUsers: 0,
      categories: ['code', 'quality'],
      servers: ['acme/github', 'acme/ci'],
      gitUrl: null,
      verified: false,
      listed: true,
      owner: owner.id,
      createdAt: body.createdAt,
    });
  });

  verifies('error:shape:skills-and-icon', 'is 404 for whatever is no skill', async () => {
    const { namespace } = await createSkill(app, owner);
    for (const path of [`${namespace}/none`, 'nobody/none', `${namespace}/%00`, 'A%00/x', `${namespace}/A`]) {
      const response = await app.as(owner).get(`/skills/${path}`);
      expect([path, response.status, response.body]).toEqual([path, 404, notFound]);
    }
    for (const [at, name] of [
      ['/skills/A%00', 'index.json'],
      ['/skills/A%00', 'x/SKILL.md'],
      [`/skills/${namespace}`, 'x%00/SKILL.md'],
      ['', 'x%00/SKILL.md'],
    ]) {
      const response = await app.as(owner).get(`${at}/.well-known/skills/${name}`);
      expect([at, name, response.status, response.body]).toEqual([at, name, 404, notFound]);
    }
  });

  verifies(
    ['skill:read:anonymous', 'error:shape:skills-and-icon'],
    'needs a key, unless reads are public; a wrong one is refused always',
    async () => {
      const { path } = await createSkill(app, owner);
      const reads = ['/skills', path, `${path}/download`, `${path}/.well-known/skills/SKILL.md`];
      for (const base of ['', path.slice(0, path.lastIndexOf('/')), path]) {
        reads.push(`${base}/.well-known/agent-skills/index.json`, `${base}/.well-known/skills/index.json`);
      }
      reads.push(`${path}/.well-known/skills/code-review/SKILL.md`);
      for (const read of reads) {
        const closed = await app.as().get(read);
        expect([read, closed.status, closed.body]).toEqual([read, 401, noKey]);
        expect([read, (await open.as().get(read)).status]).toEqual([read, 200]);
        expect([read, (await open.as().get(read).set('authorization', 'Bearer ')).status]).toEqual([read, 200]);
        const wrong = await open.as({ ...owner, key: 'slipway_wrong' }).get(read);
        expect([read, wrong.status]).toEqual([read, 401]);
      }
    },
  );
});

describe('GET /skills', () => {
  verifies('skill:read:record', 'pages through all, newest first, and ends with an empty page', async () => {
    const namespace = await createNamespace(app, owner);
    for (const slug of ['one', 'two', 'three']) await createSkill(app, owner, { namespace, slug });
    const page = async (n: number) =>
      (await app.as(other).get(`/skills?namespace=${namespace}&pageSize=2&page=${n}`)).body;
    const first = await page(1);
    expect(first.pagination).toEqual({ currentPage: 1, pageSize: 2, totalPages: 2, totalCount: 3 });
    expect(first.skills.map(({ slug }: { slug: string }) => slug)).toEqual(['three', 'two']);
    expect(first.skills[0]).toEqual({
      ...(await app.as(owner).get(`/skills/${namespace}/three`)).body,
      prompt: null,
      owner: undefined,
    });
    expect((await page(2)).skills.map(({ slug }: { slug: string }) => slug)).toEqual(['one']);
    expect((await page(3)).skills).toEqual([]);
    expect((await page(Number.MAX_SAFE_INTEGER)).skills).toEqual([]);
  });

  verifies('skill:read:search', 'finds words of slug, name and description, the best match first', async () => {
    const word = `zebra${uniqueName('').slice(1)}`;
    await createSkill(app, owner, {
      slug: `in-text-${word}x`,
      name: 'a',
      description: `Talks to a ${word}, at times.`,
    });
    await createSkill(app, owner, { slug: `${word}-tools`, name: 'b', description: 'Tools.' });
    await createSkill(app, owner, { slug: 'unrelated', name: 'c', description: 'Nothing of that kind.' });
    expect(await slugsFound(`q=${word}`)).toEqual([`${word}-tools`, `in-text-${word}x`]);
    // Ranked the same whatever was created last.
    expect(await slugsFound(`q=${word}&pageSize=1`)).toEqual([`${word}-tools`]);
    expect(await slugsFound(`q=${word}&pageSize=1&page=2&seed=7`)).toEqual([`in-text-${word}x`]);
  });

  verifies('skill:read:search', 'forgives typos, beginnings of words and other forms of them', async () => {
    const namespace = await createNamespace(app, owner);
    await createSkill(app, owner, { namespace, slug: 'postgres-migrations', name: 'postgres-migrations' });
    await createSkill(app, owner, { namespace, slug: 'pdf', name: 'pdf', description: 'Fills in forms of documents.' });
    for (const q of ['postgers', 'postgre', 'migration', 'postgres migratoins', 'POSTGRES', 'migrating']) {
      expect([q, await slugsFound(`namespace=${namespace}&q=${q}`)]).toEqual([q, ['postgres-migrations']]);
    }
    for (const q of ['form', 'docment', 'pdf']) {
      expect([q, await slugsFound(`namespace=${namespace}&q=${q}`)]).toEqual([q, ['pdf']]);
    }
    expect(await slugsFound(`namespace=${namespace}&q=kubernetes`)).toEqual([]);
    expect(await slugsFound(`namespace=${namespace}&q=%20`)).toHaveLength(2);
  });

  it('shows no more than topK matches, on all pages together', async () => {
    const namespace = await createNamespace(app, owner);
    for (let n = 0; n < 12; n += 1) await createSkill(app, owner, { namespace, slug: `review-${n}` });
    const { body } = await app.as(owner).get(`/skills?namespace=${namespace}&q=review&topK=10&pageSize=8&page=2`);
    expect(body.skills).toHaveLength(2);
    expect(body.pagination).toEqual({ currentPage: 2, pageSize: 8, totalPages: 2, totalCount: 10 });
  });

  it('filters by category, slug, owner and verification, and selects fields', async () => {
    const category = uniqueName('cat');
    const { slug, namespace } = await createSkill(app, other, { metadata: { categories: [category, 'x'] } });
    expect(await slugsFound(`category=${category}`)).toEqual([slug]);
    expect(await slugsFound(`slug=${slug}`)).toEqual([slug]);
    expect(await slugsFound(`ownerId=${other.id}&category=${category}&verified=false`)).toEqual([slug]);
    expect(await slugsFound(`ownerId=${owner.id}&category=${category}`)).toEqual([]);
    expect(await slugsFound(`category=${category}&verified=true`)).toEqual([]);
    const { body } = await app.as(owner).get(`/skills?slug=${slug}&fields=slug,namespace,nothing`);
    expect(body.skills).toEqual([{ namespace, slug }]);
  });
});

describe('DELETE /skills/{namespace}/{slug}', () => {
  verifies(
    ['skill:delete:deleted', 'skill:field:qualified-name'],
    'deletes the skill with its files and leaves others',
    async () => {
      const { namespace, slug, path } = await createSkill(app, owner, { files: { 'a.txt': 'A' } });
      const kept = await createSkill(app, owner, { namespace });
      const namesake = `/skills/${await createNamespace(app, owner)}/${slug}`;
      expect((await upload(app, owner, namesake, await zipOf({ 'SKILL.md': skillMd() }))).status).toBe(201);
      const before = await filesStored();
      const response = await app.as(owner).delete(path);
      expect(response.status).toBe(200);
      expect(response.body).toEqual({ success: true, qualifiedName: `${namespace}/${slug}` });
      expect(await filesStored()).toBe(before - 2);
      for (const gone of [path, `${path}/download`, `${path}/.well-known/skills/SKILL.md`]) {
        expect((await app.as(owner).get(gone)).status).toBe(404);
      }
      for (const { path: other } of [kept, { path: namesake }]) {
        expect((await app.as(owner).get(other)).status).toBe(200);
      }
      // The name is free again.
      expect((await upload(app, owner, path, await zipOf({ 'SKILL.md': skillMd() }))).status).toBe(201);
    },
  );

  verifies(
    ['skill:delete:not-found', 'error:shape:skills-and-icon'],
    'is 404 for no skill and no namespace',
    async () => {
      const { namespace, path } = await createSkill(app, owner);
      await app.as(owner).delete(path);
      for (const gone of [path, `/skills/${namespace}/none`, `/skills/${namespace}/%00`]) {
        const response = await app.as(owner).delete(gone);
        expect([response.status, response.body]).toEqual([404, notFound]);
      }
      const missing = await app.as(owner).delete(`/skills/${uniqueName('ns')}/none`);
      expect([missing.status, missing.body]).toEqual([404, expect.objectContaining({ error: 'Namespace not found' })]);
    },
  );

  verifies(
    ['skill:delete:foreign', 'error:shape:skills-and-icon'],
    'is refused to others and deletes nothing',
    async () => {
      const { path } = await createSkill(app, owner);
      for (const stranger of [other, app.operator]) {
        const response = await app.as(stranger).delete(path);
        expect([response.status, response.body]).toEqual([403, { error: "Forbidden: You don't own this namespace" }]);
      }
      expect((await app.as(owner).get(path)).status).toBe(200);
    },
  );
});

describe('GET …/download', () => {
  it('is counted, like a read of SKILL.md, and a 304 is not', async () => {
    const { path } = await createSkill(app, owner, { files: { 'a.txt': 'A' } });
    const { headers } = await app.as(owner).get(`${path}/download`);
    await app.as(owner).get(`${path}/download`).set('if-none-match', headers.etag);
    await app.as(owner).get(`${path}/.well-known/skills/a.txt`);
    await app.as(owner).get(`${path}/.well-known/skills/index.json`);
    for (let n = 0; n < 3; n += 1) await open.as().get(`${path}/.well-known/skills/SKILL.md`);
    const total = async () => (await app.as(owner).get(path)).body.totalActivations as number;
    await until(async () => (await total()) >= 4, 'uses are counted');
    expect(await total()).toBe(4);
  });
});

describe('/.well-known/skills of a skill', () => {
  verifies('skill:install:routes', 'is an index and every file, with the name of the skill and without', async () => {
    const { path } = await createSkill(app, owner, {
      files: { 'references/a b.md': '# A', 'code-review/SKILL.md': 'not this', 'code-review/x.txt': 'X' },
    });
    const base = `${path}/.well-known/skills`;
    const index = await open.as().get(`${base}/index.json`);
    expect([index.status, index.body]).toEqual([
      200,
      {
        skills: [
          {
            name: 'code-review',
            description: 'Reviews a change. Use it before a merge.',
            files: ['SKILL.md', 'code-review/SKILL.md', 'code-review/x.txt', 'references/a b.md'],
          },
        ],
      },
    ]);
    for (const file of ['SKILL.md', 'code-review/SKILL.md']) {
      const response = await open.as().get(`${base}/${file}`);
      expect([response.status, response.text]).toEqual([200, skillMd()]);
      expect(response.headers['content-type']).toBe('text/markdown; charset=utf-8');
    }
    for (const file of ['references/a%20b.md', 'references%2Fa%20b.md', 'code-review/references/a%20b.md']) {
      expect((await open.as().get(`${base}/${file}`)).text).toBe('# A');
    }
    for (const file of ['code-review/x.txt', 'code-review/code-review/x.txt']) {
      expect((await open.as().get(`${base}/${file}`)).text).toBe('X');
    }
  });

  verifies(
    'skill:install:discovery',
    'is part of indexes whose digests are those of the downloaded bytes',
    async () => {
      const mine = await createNamespace(app, owner);
      const theirs = await createNamespace(app, other);
      const [name, twice] = [uniqueName('alone'), uniqueName('twice')];
      const alone = await createSkill(app, owner, { namespace: mine, name });
      const first = await createSkill(app, owner, { namespace: mine, name: twice, files: { 'a/b.txt': 'B' } });
      await createSkill(app, other, { namespace: theirs, name: twice, files: { 'a/b.txt': 'theirs' } });
      const artifacts = async (at: string) => {
        const { status, body } = await open.as().get(`${at}/.well-known/agent-skills/index.json`);
        expect([status, body.$schema]).toEqual([200, 'https://schemas.agentskills.io/discovery/0.2.0/schema.json']);
        return body.skills as { name: string; type: string; url: string; digest: string }[];
      };
      const whole = async () => (await artifacts('')).filter((one) => [name, twice].includes(one.name));
      const ofMine = [
        expect.objectContaining({
          name: twice,
          type: 'archive',
          url: expect.stringMatching(`^https?://.*${first.path}/download$`),
        }),
        expect.objectContaining({ name, type: 'skill-md' }),
      ];
      for (const listed of [await whole(), await artifacts(`/skills/${mine}`)]) expect(listed).toEqual(ofMine);
      expect(await artifacts(first.path)).toEqual([ofMine[0]]);
      for (const none of ['/skills/nobody', `/skills/${mine}/none`]) {
        expect((await open.as().get(`${none}/.well-known/agent-skills/index.json`)).status).toBe(404);
      }
      const isTrue = async () => {
        const listed = [...(await whole()), ...(await artifacts(`/skills/${theirs}`))];
        expect(listed.map(({ type }) => type)).toEqual(['archive', 'skill-md', 'archive']);
        for (const { url, digest } of listed) {
          const response = await fetch(open.url + new URL(url).pathname);
          const hash = createHash('sha256').update(Buffer.from(await response.arrayBuffer()));
          expect([url, digest]).toEqual([url, `sha256:${hash.digest('hex')}`]);
        }
        return listed.map(({ digest }) => digest);
      };
      const before = await isTrue();
      await upload(app, owner, alone.path, await zipOf({ 'SKILL.md': skillMd({ name }, 'Anew.') }));
      await upload(app, owner, first.path, await zipOf({ 'SKILL.md': skillMd({ name: twice }), 'a/b.txt': 'anew' }));
      const after = await isTrue();
      expect(after.map((digest, at) => digest === before[at])).toEqual([false, false, true]);
      for (const [at, content] of [
        ['', 'anew'],
        [`/skills/${mine}`, 'anew'],
        [`/skills/${theirs}`, 'theirs'],
      ]) {
        const { body } = await open.as().get(`${at}/.well-known/skills/index.json`);
        const entry = body.skills.find((one: { name: string }) => one.name === twice);
        expect([at, entry.files]).toEqual([at, ['SKILL.md', 'a/b.txt']]);
        expect((await open.as().get(`${at}/.well-known/skills/${twice}/a/b.txt`)).text).toBe(content);
      }
      await app.as(owner).delete(first.path);
      expect((await whole()).map(({ url }) => new URL(url).pathname.split('/')[2])).toEqual([theirs, mine]);
    },
  );

  it('is 404 for a file that is not there', async () => {
    const { path } = await createSkill(app, owner);
    for (const file of ['none.md', '%00', '..%2F..%2Fetc%2Fpasswd', 'code-review', 'code-review/none', 'skill.md']) {
      const response = await app.as(owner).get(`${path}/.well-known/skills/${file}`);
      expect([file, response.status, response.body]).toEqual([file, 404, { error: 'The skill holds no such file' }]);
    }
    const none = await app.as(owner).get('/skills/nobody/none/.well-known/skills/index.json');
    expect([none.status, none.body]).toEqual([404, notFound]);
  });

  verifies('skill:install:harmless', 'sends nothing that a browser would run', async () => {
    const script = '<script>alert(1)</script>';
    const { path } = await createSkill(app, owner, {
      files: {
        'a.html': script,
        'b.svg': `<svg xmlns="http://www.w3.org/2000/svg">${script}</svg>`,
        c: script,
        'd.js': 'alert(1)',
        'e.xml': script,
        'f.png': script,
        'g.bin': Buffer.from([0, 1, 2]),
        'h.latin1': Buffer.from([0xe4]),
        'i.HTM': script,
        'j.json': '{}',
      },
    });
    const expected: Record<string, string> = {
      'a.html': 'text/plain; charset=utf-8',
      'b.svg': 'image/svg+xml',
      c: 'text/plain; charset=utf-8',
      'd.js': 'text/plain; charset=utf-8',
      'e.xml': 'text/plain; charset=utf-8',
      'f.png': 'image/png',
      'g.bin': 'application/octet-stream',
      'h.latin1': 'application/octet-stream',
      'i.HTM': 'text/plain; charset=utf-8',
      'j.json': 'application/json; charset=utf-8',
    };
    for (const [file, type] of Object.entries(expected)) {
      const { headers } = await app.as(owner).get(`${path}/.well-known/skills/${file}`);
      expect([file, headers['content-type']]).toEqual([file, type]);
      expect(headers['x-content-type-options']).toBe('nosniff');
      expect(headers['content-security-policy']).toBe("sandbox; default-src 'none'");
    }
  });
});

describe('a namespace', () => {
  verifies('namespace:delete:cascades-skills', 'takes its skills with it', async () => {
    const { namespace, path } = await createSkill(app, owner, { files: { 'a.txt': 'A' } });
    const before = await filesStored();
    expect((await app.as(owner).delete(`/namespaces/${namespace}`)).status).toBe(200);
    expect(await filesStored()).toBe(before - 2);
    await createNamespace(app, owner, namespace);
    expect((await app.as(owner).get(path)).status).toBe(404);
  });

  verifies('namespace:list:has-skills', 'is found by whether it holds skills', async () => {
    const account = await app.account();
    const empty = await createNamespace(app, account);
    const { namespace } = await createSkill(app, account);
    const found = async (flag: string) =>
      (await app.as(other).get(`/namespaces?ownerId=${account.id}&hasSkills=${flag}`)).body.namespaces.map(
        ({ name }: { name: string }) => name,
      );
    expect(await found('true')).toEqual([namespace]);
    expect(await found('1')).toEqual([namespace]);
    expect(await found('0')).toEqual([empty]);
    expect((await app.as(other).get('/namespaces?hasSkills=maybe')).status).toBe(400);
  });
});
