import { spawn, type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect } from '@jest/globals';
import { CredentialsService } from '../../src/modules/oauth/credentials.service.js';
import type { CredentialOwner } from '../../src/modules/oauth/credentials.types.js';
import { builtFile } from '../support/built.js';
import { testApp } from '../support/app.js';
import {
  startAuthorizationServer,
  type AuthorizationServer,
  type ProtectedUpstream,
} from '../support/people/authorization-server.js';
import { age, authorize, newOwner } from '../support/people/credentials.js';
import { startUpstream, type Upstream } from '../support/upstream/upstream.js';
import { until } from '../support/until.js';
import { verifies } from '../support/verifies.js';

/** Real processes take their time on a busy machine. */
const SLOW_MS = 300_000;

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

const app = testApp({ PUBLIC_URL: 'https://slipway.test' });
let upstream: Upstream;
let server: AuthorizationServer;
let guarded: ProtectedUpstream;
const children = new Set<ChildProcess>();

beforeAll(async () => {
  [upstream, server] = await Promise.all([startUpstream(), startAuthorizationServer()]);
  guarded = await server.protect(upstream.url);
});

afterEach(() => {
  for (const child of children) child.kill('SIGKILL');
  children.clear();
});

afterAll(async () => {
  await Promise.all([app.close(), upstream.close(), server.close()]);
});

/** The built service in a process of its own, with so many callers of one token. */
function startProcess(owner: CredentialOwner, callers: number) {
  const { env } = app;
  const child = spawn(
    process.execPath,
    [here('../support/people/credential-process.mjs'), builtFile(''), owner.id, guarded.url, String(callers)],
    {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: {
        PATH: process.env.PATH,
        DATABASE_URL: env.databaseUrl ?? '',
        ENCRYPTION_KEYS: (env.encryptionKeys ?? [])
          .map(({ id, secret }) => `${id}:${secret.toString('base64')}`)
          .join(),
        PUBLIC_URL: env.publicUrl ?? '',
        EGRESS_ALLOW: 'loopback',
        QUEUE_PREFIX: env.queuePrefix,
        ...(env.redisUrl === null ? {} : { REDIS_URL: env.redisUrl }),
      },
    },
  );
  children.add(child);
  let written = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (written += text));
  return {
    ready: () => until(() => written.includes('ready'), 'the process is ready', SLOW_MS),
    go: () => child.stdin.write('go\n'),
    tokens: async () => {
      const line = () => /^\[.*\]$/m.exec(written)?.[0];
      await until(line, 'the process has its tokens').catch((error: Error) => {
        throw new Error(`${error.message}\n${written}`);
      });
      return JSON.parse(line() ?? '') as string[];
    },
    kill: () => child.kill('SIGKILL'),
    ended: new Promise((resolve) => child.once('close', resolve)),
  };
}

describe('three processes', () => {
  verifies(
    'oauth:single-refresh',
    'with 50 callers send one refresh together, and use its token',
    async () => {
      const owner = newOwner();
      await authorize(app, owner, guarded.url);
      const processes = [17, 17, 16].map((callers) => startProcess(owner, callers));
      await Promise.all(processes.map(({ ready }) => ready()));
      await age(app, owner, 'ended');
      const before = server.refreshes;
      server.holdTokens();
      for (const { go } of processes) go();
      await until(() => server.held === 1, 'one of them refreshes');
      // The others stand at the row of the credential, and are no trouble to the database.
      await until(async () => {
        const [{ waiting }] = await app.database.query(
          `SELECT count(*)::int AS waiting FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'`,
        );
        return waiting === 2;
      }, 'the other two wait');
      server.releaseTokens();
      const tokens = (await Promise.all(processes.map((client) => client.tokens()))).flat();
      expect(tokens).toHaveLength(50);
      expect(new Set(tokens)).toEqual(new Set([server.issued.at(-1)?.accessToken]));
      expect(server.refreshes - before).toBe(1);
    },
    SLOW_MS,
  );
});

describe('a process that is killed', () => {
  verifies(
    'oauth:crash',
    'blocks no caller between the response and the commit, and the next call names the next step',
    async () => {
      const owner = newOwner();
      await authorize(app, owner, guarded.url);
      const victim = startProcess(owner, 5);
      await victim.ready();
      await age(app, owner, 'ended');
      // Only this one: who waits asks as soon as the victim's lock is gone.
      server.holdTokens(1);
      victim.go();
      await until(() => server.held === 1, 'the server has rotated its token');
      const waiting = app
        .get(CredentialsService)
        .accessToken(owner, guarded.url)
        .catch((error: unknown) => error);
      victim.kill();
      await victim.ended;
      server.releaseTokens('cut');
      const startedAt = Date.now();
      expect(await waiting).toMatchObject({ code: 'auth_required' });
      expect(Date.now() - startedAt).toBeLessThan(60_000);
      await authorize(app, owner, guarded.url);
      expect(await app.get(CredentialsService).accessToken(owner, guarded.url)).not.toBeNull();
    },
    SLOW_MS,
  );

  verifies(
    'oauth:crash',
    'before the server read its request leaves a working credential',
    async () => {
      const owner = newOwner();
      await authorize(app, owner, guarded.url);
      const victim = startProcess(owner, 5);
      await victim.ready();
      await age(app, owner, 'ended');
      server.delayTokens();
      victim.go();
      await until(() => server.held === 1, 'the request has arrived');
      victim.kill();
      await victim.ended;
      server.releaseTokens('cut');
      const token = await app.get(CredentialsService).accessToken(owner, guarded.url);
      expect(token).toBe(server.issued.at(-1)?.accessToken);
    },
    SLOW_MS,
  );
});
