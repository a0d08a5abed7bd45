import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { loadEnv, StartError } from './env.js';
import { settingDocs } from './env.js';
import { Tuning, tuningOf } from './tuning.js';

const base64Key = Buffer.alloc(32, 1).toString('base64');

/** The faults of these settings, one by one. */
function faults(source: NodeJS.ProcessEnv): string[] {
  try {
    loadEnv(source);
    return [];
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    return error.message.split('\n');
  }
}

/** All settings, without the variables that they were read from. */
function valuesOf(source: NodeJS.ProcessEnv) {
  return { ...loadEnv(source), source: null };
}

describe('loadEnv', () => {
  it('requires no setting', () => {
    expect(loadEnv({})).toMatchObject({
      host: '127.0.0.1',
      port: 3000,
      publicUrl: null,
      dataDir: path.resolve('.data'),
      databaseUrl: null,
      redisUrl: null,
      roles: ['api', 'worker', 'host'],
      migrate: 'auto',
      bootstrapApiKey: null,
      encryptionKeys: null,
      egressAllow: null,
      logLevel: 'info',
      logFormat: null,
      baseUrl: 'http://127.0.0.1:3000',
      isLocalOnly: true,
    });
  });

  it('reads an empty value as unset, and trims values', () => {
    const settings = Object.fromEntries(settingDocs().map(({ name }) => [name, '  ']));
    expect(valuesOf(settings)).toEqual(valuesOf({}));
    expect(loadEnv({ PORT: ' 8080 ', HOST: ' 0.0.0.0\n' })).toMatchObject({ port: 8080, host: '0.0.0.0' });
  });

  it('reports all errors together, in the order of the settings, without values', () => {
    const found = faults({
      PORT: 'canary',
      DATABASE_URL: 'mysql://me:canary@host/x',
      REDIS_URL: 'canary',
      ROLES: 'api,canary',
      MIGRATE: 'canary',
      BOOTSTRAP_API_KEY: 'slipway_canary',
      ENCRYPTION_KEYS: 'k1:canary',
      LOG_LEVEL: 'canary',
    });
    expect(found.map((line) => line.split(' ')[0])).toEqual([
      'PORT',
      'DATABASE_URL',
      'REDIS_URL',
      'ROLES',
      'MIGRATE',
      'BOOTSTRAP_API_KEY',
      'ENCRYPTION_KEYS',
      'LOG_LEVEL',
    ]);
    for (const line of found) expect(line).toMatch(/^[A-Z_]+ must .*\.$/);
    expect(found.join()).not.toContain('canary');
  });

  it.each([
    ['PORT', ['0', '65535'], ['-1', '65536', '80.5', 'http', '80 80']],
    ['DATABASE_POOL_MAX', ['1', '500'], ['0', '501']],
    ['MCP_CALL_TIMEOUT_MS', ['100', '3600000'], ['99', '3600001']],
    ['UPSTREAM_CONNECT_TIMEOUT_MS', ['100', '54000'], ['99', '60000']],
    ['BLOB_URL', ['s3://b', 's3://b/p?endpoint=http://h:9&region=r'], ['b', 's3:///p', 's3://id:key@b', 's3://b?a=1']],
    ['REDIS_URL', ['redis://h:1', 'rediss://u:p@h/0'], ['http://h', 'h:6379', 'redis']],
    ['EGRESS_PROXY', ['http://h:3128', 'http://u:p%40@h/'], ['https://h', 'h:3128', 'http://h/x', 'http://u:%@h:1']],
    [
      'PUBLIC_URL',
      ['http://h', 'https://h/base/'],
      ['ftp://h', 'h', 'https://h?a=b', 'https://h/#x', 'https://me:word@h'],
    ],
    ['ROLES', ['api', 'worker', 'worker, api', 'host'], ['Api', 'api,', 'api;worker', 'all']],
    ['MIGRATE', ['auto', 'off'], ['on', 'no']],
    ['REGISTRY_HOSTS', ['none', 'a.com', '*.a.com, b'], ['https://a.com', 'a.com/x', 'a.com:80', '*', 'a.*.com', 'a,']],
    ['LOG_LEVEL', ['trace', 'fatal'], ['verbose', 'INFO']],
    ['LOG_FORMAT', ['json', 'pretty'], ['text']],
    ['BOOTSTRAP_API_KEY', [`slipway_${'x'.repeat(43)}`], [`slipway_${'x'.repeat(42)}`, 'x'.repeat(51), 'slipway_']],
    [
      'ENCRYPTION_KEYS',
      [`k1:${base64Key}`, `new:${base64Key},old:${base64Key.replace('A', 'B')}`],
      ['k1', `k1:${base64Key.slice(4)}`, `:${base64Key}`, `k 1:${base64Key}`, `k1:${base64Key},`, `k.1:${base64Key}`],
    ],
  ])('%s accepts %p and refuses %p', (name, good, bad) => {
    for (const value of good) expect([value, faults({ [name]: value })]).toEqual([value, []]);
    for (const value of bad)
      expect([value, faults({ [name]: value })]).toEqual([value, [expect.stringMatching(`^${name} must`)]]);
  });

  it.each([
    [256, { httpBodiesBytes: 64, databasePoolMax: 8, runtimeLiveMax: 4 }],
    [2_048, { httpBodiesBytes: 256, databasePoolMax: 16, runtimeLiveMax: 32 }],
    [1_024, { httpBodiesBytes: 128, databasePoolMax: 16, runtimeLiveMax: 16 }],
  ])('derives sizes from the memory of a container of %p MB', (memoryMb, expected) => {
    const limit = jest.spyOn(process, 'constrainedMemory').mockReturnValue(memoryMb * 1024 * 1024);
    const { databasePoolMax, runtimeLiveMax } = loadEnv({});
    const { httpBodiesBytes } = new Tuning();
    const chosen = loadEnv({ DATABASE_POOL_MAX: '3', RUNTIME_LIVE_MAX: '2' });
    limit.mockRestore();
    expect({ httpBodiesBytes: httpBodiesBytes / 1024 / 1024, runtimeLiveMax }).toEqual({
      httpBodiesBytes: expected.httpBodiesBytes,
      runtimeLiveMax: expected.runtimeLiveMax,
    });
    expect(databasePoolMax).toBe(Math.min(expected.databasePoolMax, 8 * availableParallelism()));
    expect(chosen).toMatchObject({ databasePoolMax: 3, runtimeLiveMax: 2 });
  });

  it('checks the variables of Node.js and OpenTelemetry that it looks at, which are no settings', () => {
    expect(faults({ NODE_EXTRA_CA_CERTS: '/nowhere', OTEL_TRACES_EXPORTER: 'console' })).toEqual([
      'NODE_EXTRA_CA_CERTS must name a file of PEM certificates that the service can read.',
      'OTEL_TRACES_EXPORTER must be one of otlp, none.',
    ]);
  });

  it.each([
    ['"postgres://h/d"', 'DATABASE_URL must not be in quotes.'],
    [
      'postgres://me:pa/ss#word@h/d',
      /^DATABASE_URL must have the reserved characters of its parts percent-encoded: `#` is/,
    ],
    ['mysql://h/d', 'DATABASE_URL must be a URL that starts with postgres: or postgresql://.'],
    ['postgres://me:pa%ss@h/d', /percent-encoded: .*`%` is `%25`/],
  ])('says what is wrong with the URL %s', (DATABASE_URL, message) => {
    expect(() => loadEnv({ DATABASE_URL, ENCRYPTION_KEYS: `k1:${Buffer.alloc(32).toString('base64')}` })).toThrow(
      message,
    );
  });

  it.each(['redis://:p@s/w#x@h', 'redis://:p@s/w@h', 'redis://:p@s?w@h', 'redis://:p@s#x'])(
    'refuses %s, whose host would be a part of the password',
    (REDIS_URL) => expect(faults({ REDIS_URL })).toEqual([expect.stringMatching(/^REDIS_URL must .*`#` is `%23`/)]),
  );

  it('reads the socket of a Postgres, and IPv6 addresses with brackets and without', () => {
    const socket = { DATABASE_URL: 'postgres://app@/db?host=/run/postgresql', ENCRYPTION_KEYS: `k1:${base64Key}` };
    expect(loadEnv(socket).databaseUrl).toBe('postgres://app@localhost/db?host=/run/postgresql');
    expect(loadEnv({ HOST: '[::1]' })).toMatchObject({ host: '::1', baseUrl: 'http://[::1]:3000', isLocalOnly: true });
    expect(loadEnv({ ADVERTISE_URL: 'http://fd00::12:3000' }).internalUrl).toBe('http://[fd00::12]:3000');
  });

  it('names settings whose values are quoted', () => {
    expect(faults({ APP_NAME: '"Acme"', PORT: "'80'" })).toEqual([
      'PORT must not be in quotes.',
      'APP_NAME must not be in quotes.',
    ]);
  });

  it('requires an encryption key with an external database', () => {
    expect(faults({ DATABASE_URL: 'postgres://h/x' })).toEqual([
      expect.stringMatching(/^ENCRYPTION_KEYS must be set with/),
    ]);
    expect(faults({ DATABASE_URL: 'postgresql://h/x', ENCRYPTION_KEYS: `k1:${base64Key}` })).toEqual([]);
  });

  it('refuses two encryption keys of one name, since values sealed with the first could not be opened with the second', () => {
    expect(faults({ ENCRYPTION_KEYS: `k1:${base64Key},k1:${base64Key}` })).toEqual([
      'ENCRYPTION_KEYS must not give two keys the same id.',
    ]);
  });

  it('detects that the service is reachable from this machine only', () => {
    const local = (HOST: string) => loadEnv({ HOST }).isLocalOnly;
    expect(['127.0.0.1', '127.1.2.3', 'localhost', '::1'].map(local)).toEqual([true, true, true, true]);
    expect(['0.0.0.0', '::', '10.0.0.1', 'example.com'].map(local)).toEqual([false, false, false, false]);
    const published = (PUBLIC_URL: string) => loadEnv({ HOST: '127.0.0.1', PUBLIC_URL }).isLocalOnly;
    expect(['http://localhost:8080', 'http://[::1]', 'https://mcp.example.com'].map(published)).toEqual([
      true,
      true,
      false,
    ]);
    expect(loadEnv({ HOST: '127.0.0.1', TRUST_PROXY: '127.0.0.1' }).isLocalOnly).toBe(false);
  });

  it('makes new servers public while only this machine reaches it, and restricted otherwise', () => {
    expect(loadEnv({}).defaultVisibility).toBe('public');
    expect(loadEnv({ HOST: '0.0.0.0' }).defaultVisibility).toBe('restricted');
    expect(loadEnv({ HOST: '0.0.0.0', DEFAULT_VISIBILITY: 'public' }).defaultVisibility).toBe('public');
    expect(loadEnv({ DEFAULT_VISIBILITY: 'private' }).defaultVisibility).toBe('private');
  });

  it('builds the base URL', () => {
    expect(loadEnv({ HOST: '::1', PORT: '80' }).baseUrl).toBe('http://[::1]:80');
    for (const spelling of ['https://mcp.example.com/base//', 'HTTPS://MCP.example.com:443//base']) {
      expect(loadEnv({ PUBLIC_URL: spelling }).baseUrl).toBe('https://mcp.example.com/base');
    }
    expect(loadEnv({ PUBLIC_URL: 'https://bücher.example' }).baseUrl).toBe('https://xn--bcher-kva.example');
    expect(loadEnv({}).copyWith({ port: 7 }).baseUrl).toBe('http://127.0.0.1:7');
  });
});

describe('a secret in a file', () => {
  let folder: string;
  const file = (name: string, text: string) => {
    writeFileSync(path.join(folder, name), text);
    return path.join(folder, name);
  };
  const secrets = {
    DATABASE_URL: 'postgres://h/x',
    REDIS_URL: 'redis://h',
    BOOTSTRAP_API_KEY: `slipway_${'x'.repeat(43)}`,
    ENCRYPTION_KEYS: `k1:${base64Key}`,
    EGRESS_PROXY: 'http://u:p@h:3128',
    SIMULATOR_API_KEY: 'key',
    METRICS_TOKEN: 'x'.repeat(16),
  };

  beforeAll(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'slipway-secrets-'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it('is read like the variable, without a final line break', () => {
    const named = settingDocs().flatMap(({ name, isSecret }) => (isSecret ? [name] : []));
    expect(named.sort()).toEqual(Object.keys(secrets).sort());
    const files = Object.entries(secrets).map(([name, value]) => [`${name}_FILE`, file(name, `${value}\n`)]);
    expect(valuesOf(Object.fromEntries(files) as Record<string, string>)).toEqual(valuesOf(secrets));
  });

  it('is refused if the variable is set too, or the file is unreadable, empty or invalid, without its content', () => {
    const keys = file('keys', 'canary');
    expect(faults({ ENCRYPTION_KEYS: secrets.ENCRYPTION_KEYS, ENCRYPTION_KEYS_FILE: keys })).toEqual([
      'ENCRYPTION_KEYS must not be set together with ENCRYPTION_KEYS_FILE: remove one of them.',
    ]);
    expect(faults({ DATABASE_URL_FILE: path.join(folder, 'canary'), ENCRYPTION_KEYS_FILE: folder })).toEqual([
      'DATABASE_URL must be in the file that DATABASE_URL_FILE names, which cannot be read (ENOENT).',
      'ENCRYPTION_KEYS must be in the file that ENCRYPTION_KEYS_FILE names, which cannot be read (EISDIR).',
    ]);
    expect(faults({ METRICS_TOKEN_FILE: file('empty', '\n') })).toEqual([
      'METRICS_TOKEN must be in the file that METRICS_TOKEN_FILE names, which is empty.',
    ]);
    expect(faults({ ENCRYPTION_KEYS_FILE: keys })).toEqual([
      'ENCRYPTION_KEYS must be a list of id:key where key is 32 bytes in base64.',
    ]);
    expect(faults({ DATABASE_URL_FILE: file('url', 'postgres://h/x') })).toEqual([
      expect.stringMatching(/^ENCRYPTION_KEYS must be set with/),
    ]);
  });
});

describe('settingDocs', () => {
  it('describes every setting, with valid defaults', () => {
    const docs = settingDocs();
    expect(new Set(docs.map(({ name }) => name)).size).toBe(docs.length);
    for (const { name, doc, fallback } of docs) {
      expect(doc).toMatch(/\w/);
      if (fallback !== null) expect(faults({ [name]: fallback })).toEqual([]);
    }
  });
});

describe('tuningOf', () => {
  it('replaces members by those of --tuning', () => {
    const changed = tuningOf(['main.js', '--tuning', '{"releaseKeep":1}']);
    expect(changed).toEqual({ ...new Tuning(), releaseKeep: 1 });
    expect(tuningOf(['main.js'])).toEqual(new Tuning());
  });

  it.each([
    [[], '--tuning must be followed by a JSON object.'],
    [['null'], '--tuning must be followed by a JSON object.'],
    [['{"releaseKept":1}'], '--tuning: releaseKept is not a known name, or its value is not a number.'],
    [['{"toString":1}'], '--tuning: toString is not a known name, or its value is not a number.'],
    [['{"releaseKeep":"1"}'], '--tuning: releaseKeep is not a known name, or its value is not a number.'],
  ])('refuses %p', (args, message) => {
    expect(() => tuningOf(['--tuning', ...args])).toThrow(new StartError(message));
  });
});
