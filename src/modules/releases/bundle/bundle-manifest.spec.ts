import { describe, expect, it } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { ZipFile } from 'yazl';
import { InvalidInputError } from '../../../platform/errors/domain-error.js';
import { InvalidArchiveError, openZip } from '../../../platform/zip/zip-archive.js';
import { readBundle, type BundleFacts } from './bundle-manifest.js';
import { requireConfigSchema } from '../config/config-schema.js';

const limits = { entriesMax: 1_000, totalBytesMax: 16 * 1024 * 1024 };
const inputSchema = { type: 'object', properties: {} };

const manifest = {
  manifest_version: '0.3',
  name: 'weather',
  version: '1.2.0',
  description: 'Tells the weather.',
  author: { name: 'Ada' },
  server: {
    type: 'node',
    entry_point: 'server/index.js',
    mcp_config: { command: 'node', args: ['${__dirname}/server/index.js'], env: { KEY: '${user_config.key}' } },
  },
};

/** Packs these files as they are and reads them as a bundle; `manifest.json` may be text. */
async function read(files: Record<string, string | object | null>): Promise<BundleFacts> {
  const zip = new ZipFile();
  for (const [path, content] of Object.entries({ 'server/index.js': '', ...files })) {
    if (content === null) continue;
    if (path.endsWith('/')) zip.addEmptyDirectory(path);
    else zip.addBuffer(Buffer.from(typeof content === 'string' ? content : JSON.stringify(content)), path);
  }
  zip.end();
  const archive = await openZip(await buffer(zip.outputStream), limits);
  try {
    return await readBundle(archive);
  } finally {
    archive.close();
  }
}

const readWith = (more: object, files = {}) => read({ 'manifest.json': { ...manifest, ...more }, ...files });
const readServer = (more: object, files = {}) => readWith({ server: { ...manifest.server, ...more } }, files);

async function faultOf(reading: Promise<BundleFacts>): Promise<string> {
  const error: unknown = await reading.then(
    () => new Error('accepted'),
    (reason: unknown) => reason,
  );
  const isOurs = error instanceof InvalidInputError || error instanceof InvalidArchiveError;
  return isOurs ? (error as Error).message : `unexpected: ${String(error)}`;
}

describe('a bundle', () => {
  it('needs no command with uv, and no file if it starts a program of its host', async () => {
    const uv = { type: 'uv', entry_point: 'server/index.js', mcp_config: undefined };
    expect(await readServer(uv)).toMatchObject({ runtime: 'python' });
    expect(await readServer({ ...uv, mcp_config: null })).toMatchObject({ runtime: 'python' });
    expect(await faultOf(readServer({ ...uv, type: 'node' }))).toContain('server.mcp_config must be an object');
    const ofHost = { entry_point: '', mcp_config: { command: 'npx', args: ['-y', 'server'] } };
    expect(await readServer(ofHost)).toMatchObject({ runtime: 'node' });
    expect(await faultOf(readServer({ entry_point: '' }))).toContain('server.entry_point must be a string');
  });

  it('may spell its file with backslashes and with a prefix for its folder', async () => {
    for (const path of [
      'server\\index.js',
      '.\\server\\index.js',
      '${__dirname}\\server\\index.js',
      './server/index.js',
    ]) {
      expect(await readServer({ entry_point: path })).toMatchObject({ runtime: 'node' });
    }
  });

  it('may have the required members only, any version, and unknown members', async () => {
    for (const more of [
      { dxt_version: '0.1', manifest_version: undefined },
      { manifest_version: '0.4' },
      { 'x-more': 1 },
    ]) {
      expect(await readWith(more)).toMatchObject({
        serverInfo: { name: 'weather', version: '1.2.0' },
        ...{ tools: [], isComplete: false, prompts: null, configSchema: {} },
      });
    }
    expect(await read({ 'manifest.json': `\uFEFF${JSON.stringify(manifest)}` })).toMatchObject({ runtime: 'node' });
  });

  it('declares all its tools if each has a schema and none is generated', async () => {
    const [full, bare] = [{ name: 'a', inputSchema }, { name: 'b' }];
    expect((await readWith({ tools: [full] })).isComplete).toBe(true);
    expect((await readWith({ tools: [full, bare] })).isComplete).toBe(false);
    expect((await readWith({ tools: [full], tools_generated: true })).isComplete).toBe(false);
    expect((await readWith({ tools: [] })).isComplete).toBe(false);
  });

  it('starts a file that is in it', async () => {
    for (const entry_point of ['server/index.js', './server/index.js', '${__dirname}/server/index.js']) {
      expect((await readServer({ entry_point })).runtime).toBe('node');
    }
    expect(
      (await readServer({ type: 'binary', entry_point: 'server/weather' }, { 'server/weather.exe': '' })).runtime,
    ).toBe('binary');
    for (const entry_point of ['index.js', '../server/index.js', '/server/index.js', 'server', 'server/', 'd/', '']) {
      expect(await faultOf(readServer({ entry_point }, { 'd/': '' }))).toMatch(/^manifest\.json: server\.entry_point /);
    }
    expect(await faultOf(readServer({ entry_point: 'dist/\u202Ex.js' }))).toBe(
      'manifest.json: server.entry_point names "dist/\\u{202E}x.js", and there is no such file in the bundle. ' +
        '`mcpb validate` checks a manifest before it is packed.',
    );
  });
});

describe('the user configuration of a bundle', () => {
  const configOf = async (user_config: object) => (await readWith({ user_config })).configSchema;

  it('becomes a schema in the form that published tools write', async () => {
    const config = await configOf({
      key: { type: 'string', title: 'Key', description: 'Yours', required: true, sensitive: true },
      dirs: { type: 'directory', multiple: true, required: true, default: ['${HOME}'] },
      log: { type: 'file' },
      days: { type: 'number', default: 3, min: 1, max: 9 },
      fast: { type: 'boolean', default: false },
      'db.host': { type: 'string', required: true },
      'db.port': { type: 'number' },
      'a.b.c': { type: 'string', required: true },
      'cache.ttl': { type: 'number' },
    });
    expect(config).toEqual({
      type: 'object',
      properties: {
        key: { type: 'string', title: 'Key', description: 'Yours', 'x-sensitive': true },
        dirs: { type: 'array', items: { type: 'string' }, default: ['${HOME}'] },
        log: { type: 'string' },
        days: { type: 'number', minimum: 1, maximum: 9, default: 3 },
        fast: { type: 'boolean', default: false },
        db: { type: 'object', properties: { host: { type: 'string' }, port: { type: 'number' } }, required: ['host'] },
        a: {
          type: 'object',
          properties: { b: { type: 'object', properties: { c: { type: 'string' } }, required: ['c'] } },
          required: ['b'],
        },
        cache: { type: 'object', properties: { ttl: { type: 'number' } } },
      },
      required: ['key', 'dirs', 'db', 'a'],
    });
    expect(requireConfigSchema(config, 'stdio')).toEqual({ schema: config, warnings: [] });
    expect(await configOf({})).toEqual({});
    const limits: [option: object, schema: object][] = [
      [{ min: 0 }, { minimum: 0 }],
      [{ max: 0.5 }, { maximum: 0.5 }],
      [{ min: '1', max: null }, {}],
      [
        { multiple: true, min: 1, max: 9 },
        { type: 'array', items: { type: 'number', minimum: 1, maximum: 9 } },
      ],
    ];
    for (const [option, schema] of limits) {
      expect((await configOf({ x: { type: 'number', ...option } })).properties).toEqual({
        x: { type: 'number', ...schema },
      });
    }
    expect((await configOf({ x: { type: 'string', min: 1, max: 9 } })).properties).toEqual({ x: { type: 'string' } });
  });

  it('is refused if it makes no valid schema', async () => {
    const faults: [object, string][] = [
      [{ key: 'string' }, 'user_config.key must be an object'],
      [{ key: { type: 'secret' } }, 'user_config.key.type must be one of string, number, boolean, file, directory'],
      [{ key: { type: 'toString' } }, 'user_config.key.type must be one of string, number, boolean, file, directory'],
      [{ 'a..b': { type: 'string' } }, 'user_config."a..b" is not a valid name'],
      [{ [Array(101).fill('a').join('.')]: { type: 'string' } }, 'is not a valid name'],
      [
        { db: { type: 'string' }, 'db.host': { type: 'string' } },
        'user_config."db.host" has a value and nested values',
      ],
      [{ 'db.host': { type: 'string' }, db: { type: 'string' } }, 'user_config."db" has a value and nested values'],
    ];
    for (const [user_config, message] of faults) expect(await faultOf(readWith({ user_config }))).toContain(message);
    expect(await faultOf(readWith({ user_config: [] }))).toContain('user_config must be an object');
  });

  it('may have any names, and changes no prototype', async () => {
    const user_config = JSON.parse(
      '{"__proto__": {"type": "string"}, "constructor.prototype.x": {"type": "string"}}',
    ) as object;
    const { properties } = (await configOf(user_config)) as { properties: object };
    expect(Object.keys(properties)).toEqual(['__proto__', 'constructor']);
    expect(({} as { x?: unknown }).x).toBeUndefined();
  });
});

describe('a bundle that cannot be installed', () => {
  it('has no manifest at its root', async () => {
    expect(await faultOf(read({}))).toBe(
      'manifest.json is missing at the root of the bundle: build it with `mcpb pack`.',
    );
    expect(await faultOf(read({ 'manifest.json/': '' }))).toContain('manifest.json is missing');
    expect(await faultOf(read({ 'weather/manifest.json': manifest }))).toBe(
      'manifest.json is missing at the root of the bundle (it is at "weather/manifest.json": pack what is in that ' +
        'folder, not the folder): build it with `mcpb pack`.',
    );
  });

  it('has an incomplete or unreadable manifest', async () => {
    const cases: [object, string][] = [
      [{ name: undefined }, 'manifest.json: name must be a string.'],
      [{ version: '' }, 'manifest.json: version must not be empty.'],
      [{ server: undefined }, 'manifest.json: server must be an object.'],
      [
        { server: { ...manifest.server, mcp_config: undefined } },
        'manifest.json: server.mcp_config must be an object.',
      ],
      [
        { server: { ...manifest.server, mcp_config: {} } },
        'manifest.json: server.mcp_config.command must be a string that is',
      ],
      [
        { server: { ...manifest.server, mcp_config: { command: 'node', args: [1] } } },
        'manifest.json: server.mcp_config.args must be an array of strings.',
      ],
      [
        { server: { ...manifest.server, mcp_config: { command: 'node', env: { A: 1 } } } },
        'manifest.json: server.mcp_config.env must be an object of strings.',
      ],
      [{ tools: [{}] }, 'manifest.json: tools.0.name must be a string.'],
      [{ tools: {} }, 'manifest.json: tools must be an array.'],
      [{ prompts: ['x'] }, 'manifest.json: prompts.0 must be an object.'],
      [{ description: '\0' }, 'manifest.json must not hold NUL characters or broken unicode.'],
    ];
    for (const [more, message] of cases) expect(await faultOf(readWith(more))).toContain(message);
    expect(await faultOf(read({ 'manifest.json': '[]' }))).toBe('manifest.json must hold a JSON object.');
    expect(await faultOf(read({ 'manifest.json': '' }))).toContain('manifest.json is not valid JSON');
    expect(await faultOf(read({ 'manifest.json': '{"a": "\u202E' }))).toMatch(
      /^manifest\.json is not valid JSON: [^\u202E]*$/,
    );
    expect(await faultOf(read({ 'manifest.json': '{"a":'.repeat(100_000) + '1' + '}'.repeat(100_000) }))).toContain(
      '100 nested levels',
    );
    expect(await faultOf(read({ 'manifest.json': `"${randomBytes(600 * 1024).toString('hex')}"` }))).toContain(
      'larger than 1048576 bytes',
    );
  });
});
