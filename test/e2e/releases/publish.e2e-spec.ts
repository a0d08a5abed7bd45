import { beforeAll, describe, expect, it } from '@jest/globals';
import { testAccount, testApp } from '../../support/app.js';
import { createServer } from '../../support/factories.js';
import { startGuarded, type GuardedUpstream } from '../../support/special-upstreams/guarded-upstream.js';
import { putForm, releaseForm } from '../../support/documentation/raw-form.js';
import { publish, releaseIn, releasesPath } from '../../support/releases/releases.js';

const app = testApp();
const owner = testAccount(app);
let upstream: GuardedUpstream;
let name: string;

beforeAll(async () => {
  upstream = await startGuarded();
  name = await createServer(app, owner);
});

const external = (more: object = {}) => ({ type: 'external', upstreamUrl: upstream.url, ...more });
const hosted = (more: object = {}) => ({ type: 'hosted', ...more });
const module = 'export default function createServer() { return {}; }\n';

/** Status and body of the answer to publishing. */
async function answerTo(payload: object | string, files: Record<string, Buffer> = {}): Promise<[number, unknown]> {
  const response = await publish(app, owner, name, payload, files);
  return [response.status, response.body];
}

describe('a publish form', () => {
  it('is taken with 202, an id to follow and the address of the server', async () => {
    const [status, body] = await answerTo(external());
    expect(status).toBe(202);
    expect(body).toEqual({
      deploymentId: expect.any(String),
      status: 'QUEUED',
      mcpUrl: `${app.url}/run/${name.replace('/', '--')}`,
    });
    await releaseIn(app, owner, name, (body as { deploymentId: string }).deploymentId, 'SUCCESS');
  });

  it('is refused with the reason if its payload is invalid', async () => {
    const { href: url } = new URL(upstream.url);
    const cases: [payload: string, error: string | RegExp][] = [
      ['', /^The part "payload" is not valid JSON: /],
      ['{', /^The part "payload" is not valid JSON: /],
      ['null', 'The part "payload" must be a JSON object'],
      ['[]', 'The part "payload" must be a JSON object'],
      ['"external"', 'The part "payload" must be a JSON object'],
      ['{}', 'type must be one of external, hosted, stdio'],
      ['{"type":"repo"}', 'type must be one of external, hosted, stdio'],
      ['{"type":"toString"}', 'type must be one of external, hosted, stdio'],
      ['{"type":["external"]}', 'type must be one of external, hosted, stdio'],
      ['{"type":"external"}', 'upstreamUrl is required'],
      [`{"type":"external","upstreamUrl":"${url}","source":{"commit":7}}`, /source\.commit must be a string/],
      [`{"type":"external","upstreamUrl":"${url}","source":"main"}`, /source/],
      [`{"type":"external","upstreamUrl":"${url}","source":{"branch":"a\\u0000b"}}`, /NUL characters/],
      [`{"type":"external","upstreamUrl":"${url}","scanCredentials":{"k":1}}`, 'scanCredentials.k must be a string'],
      [`{"type":"external","upstreamUrl":"${url}","scanCredentials":["k"]}`, /scanCredentials/],
      [`{"type":"external","upstreamUrl":"${url}","__proto__":{"a":1}}`, 'The key "__proto__" is not taken'],
    ];
    const before = (await app.as(owner).get(releasesPath(name))).body.pagination.totalCount;
    for (const [payload, error] of cases) {
      const [status, body] = await answerTo(payload);
      expect([payload, status, body]).toEqual([
        payload,
        400,
        { error: typeof error === 'string' ? error : expect.stringMatching(error) },
      ]);
    }
    const after = (await app.as(owner).get(releasesPath(name))).body.pagination.totalCount;
    expect(after).toBe(before);
  });

  it('may contain unknown members, as published tools send them', async () => {
    const [status] = await answerTo(
      external({ hasAuthAdapter: false, serverCard: { any: 1 }, eventTopics: [], source: { commit: 'a', x: 1 } }),
    );
    expect(status).toBe(202);
  });

  it('needs the parts of its type, and has no others', async () => {
    const file = Buffer.from('x');
    expect(await answerTo(hosted())).toEqual([400, { error: 'Missing required part: module' }]);
    expect(await answerTo({ type: 'stdio', runtime: 'node' })).toEqual([
      400,
      { error: 'Missing required part: bundle' },
    ]);
    expect(await answerTo({ type: 'stdio', runtime: 'node' }, { module: file })).toEqual([
      400,
      { error: 'Missing required part: bundle' },
    ]);
    expect(await answerTo(external(), { bundle: file })).toEqual([
      400,
      { error: 'A release of type external has no part "bundle"' },
    ]);
    expect(await answerTo({ type: 'stdio', runtime: 'node' }, { bundle: file, sourcemap: file })).toEqual([
      400,
      { error: 'A release of type stdio has no part "sourcemap"' },
    ]);
    expect(await answerTo({ type: 'stdio', runtime: 'ruby' }, { bundle: file })).toEqual([
      400,
      { error: 'runtime must be one of the following values: node, python, binary, bun' },
    ]);
  });

  it('is refused when its payload is missing or there twice, and when a part is unknown', async () => {
    const payload = JSON.stringify(external());
    const cases = [
      [[], 'Missing required part: payload'],
      [
        [
          { name: 'payload', content: payload },
          { name: 'payload', content: payload },
        ],
        'The part "payload" is there twice',
      ],
      [
        [
          { name: 'payload', content: payload },
          { name: 'icon', filename: 'icon.png', content: 'x' },
        ],
        'The part "icon" is not known: the form takes payload, module, sourcemap, bundle',
      ],
      [
        [
          { name: 'payload', content: payload },
          { name: 'module', content: module },
        ],
        /module/,
      ],
      [
        [
          { name: 'payload', content: JSON.stringify(hosted()) },
          { name: 'module', filename: 'a.js', content: module },
          { name: 'module', filename: 'b.js', content: module },
        ],
        'The part "module" is there twice',
      ],
    ] as const;
    for (const [parts, error] of cases) {
      const answer = await putForm(app, owner, name, [...parts]);
      expect([answer.status, answer.body]).toEqual([
        400,
        { error: typeof error === 'string' ? error : expect.stringMatching(error) },
      ]);
    }
  });

  it('takes a payload of 4 MB and not one byte more', async () => {
    const fill = (bytes: number) => {
      const empty = JSON.stringify(external({ filling: '' }));
      return JSON.parse(empty.replace('"filling":""', `"filling":"${'x'.repeat(bytes - empty.length)}"`)) as object;
    };
    const limit = 4 * 1024 * 1024;
    expect((await putForm(app, owner, name, releaseForm(fill(limit)))).status).toBe(202);
    const refused = await putForm(app, owner, name, releaseForm(fill(limit + 1)));
    expect([refused.status, refused.body]).toEqual([
      400,
      { error: `The part "payload" is larger than ${limit} bytes` },
    ]);
  });
});

describe('an upstream URL', () => {
  it('is rejected immediately where Slipway would not dial it', async () => {
    const cases: [url: string, error: RegExp][] = [
      ['http://10.0.0.1/mcp', /private/],
      ['http://169.254.169.254/latest/meta-data', /cloud metadata/],
      ['https://[fd00::1]/mcp', /unique local/],
      ['ftp://example.com/mcp', /http/],
      ['file:///etc/passwd', /http/],
      ['nonsense', /URL/],
      ['https://me:secret-word@example.com/mcp', /user name or password/],
      [`https://example.com/${'a'.repeat(2_048)}`, /2048/],
    ];
    for (const [upstreamUrl, error] of cases) {
      const [status, body] = await answerTo(external({ upstreamUrl }));
      expect([upstreamUrl, status, body]).toEqual([upstreamUrl, 400, { error: expect.stringMatching(error) }]);
      expect(JSON.stringify(body)).not.toContain('secret-word');
    }
  });
});

describe('what a publisher claims', () => {
  it('is rejected with the path of the problem when a server card is invalid', async () => {
    const serverInfo = { name: 'a', version: '1' };
    const cases: [card: unknown, error: string | RegExp][] = [
      ['x', /serverCard must be an object/],
      [{}, 'serverCard.serverInfo must be an object'],
      [{ serverInfo: { name: 'a' } }, 'serverCard.serverInfo.version must be a string'],
      [{ serverInfo, tools: {} }, 'serverCard.tools must be an array'],
      [{ serverInfo, tools: [{ name: 'ok' }, {}] }, 'serverCard.tools.1.name must be a string'],
      [{ serverInfo, resources: [{ name: 'a' }] }, 'serverCard.resources.0.uri must be a string'],
      [{ serverInfo, prompts: [{ name: 'a\u0000' }] }, /^serverCard .*NUL/],
    ];
    for (const [serverCard, error] of cases) {
      const [status, body] = await answerTo(hosted({ serverCard }), { module: Buffer.from(module) });
      expect([status, body]).toEqual([
        400,
        { error: typeof error === 'string' ? error : expect.stringMatching(error) },
      ]);
    }
  });

  it('is refused, not lost, when names of secrets cannot be stored', async () => {
    for (const secretNames of [['a\u0000b'], ['\ud800'], [7], 'TOKEN', Array(101).fill('a')]) {
      const [status, body] = await answerTo(hosted({ secretNames }), { module: Buffer.from(module) });
      expect([status, body]).toEqual([400, { error: expect.stringMatching(/secretNames/) }]);
    }
  });
});
