// Also run with the queue on Redis by test:long: jobs, and messages between processes.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import {
  AuthorizationRequiredError,
  CredentialUnavailableError,
} from '../../../src/modules/oauth/credentials.errors.js';
import { CredentialsService } from '../../../src/modules/oauth/credentials.service.js';
import type { CredentialOwner } from '../../../src/modules/oauth/credentials.types.js';
import { testApp, type TestApp } from '../../support/app.js';
import {
  startAuthorizationServer,
  type AuthorizationServer,
  type ProtectedUpstream,
} from '../../support/people/authorization-server.js';
import { age, authorize, newOwner, secretsOf, storedText } from '../../support/people/credentials.js';
import { startUpstream, type Upstream } from '../../support/upstream/upstream.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';

const app = testApp({ PUBLIC_URL: 'https://slipway.test' });
/** Two more processes on the same database, as far as a test can be several. */
let siblings: [TestApp, TestApp];
let upstream: Upstream;
let server: AuthorizationServer;
let guarded: ProtectedUpstream;
let owner: CredentialOwner;

beforeAll(async () => {
  [upstream, server] = await Promise.all([startUpstream(), startAuthorizationServer()]);
  siblings = await Promise.all([app.sibling(), app.sibling()]);
  guarded = await server.protect(upstream.url);
});

afterAll(async () => {
  await Promise.all([...siblings.map((sibling) => sibling.close()), upstream.close(), server.close()]);
});

beforeEach(async () => {
  owner = newOwner();
  await authorize(app, owner, guarded.url);
});

function token(rejected?: string, from = app): Promise<string | null> {
  return from.get(CredentialsService).accessToken(owner, guarded.url, rejected);
}

async function row() {
  const [found] = await app.database.query('SELECT * FROM upstream_credentials WHERE owner_id = $1', [owner.id]);
  return found;
}

/** Lets every process look at the database again: what it believes is at most 5 s old. */
async function forget(): Promise<void> {
  for (const one of [app, ...siblings]) {
    (one.get(CredentialsService) as unknown as { cache: { drop(key: string): void } }).cache.drop(
      `${owner.kind}/${owner.id}`,
    );
  }
}

async function makeDue(how: 'due' | 'ended' = 'due'): Promise<void> {
  await age(app, owner, how);
  await forget();
}

/** Runs something and says how many refreshes it cost. */
async function refreshesOf(work: () => Promise<unknown>): Promise<number> {
  const before = server.refreshes;
  await work();
  return server.refreshes - before;
}

const last = () => server.issued.at(-1)?.accessToken;

describe('a token', () => {
  verifies('oauth:refresh', 'is kept while it is fresh, and renewed when it is due', async () => {
    const first = await token();
    expect(await refreshesOf(() => Promise.all([token(), token(), token(undefined, siblings[0])]))).toBe(0);
    await makeDue();
    expect(await refreshesOf(token)).toBe(1);
    expect(await token()).toBe(last());
    expect(await token()).not.toBe(first);
    expect(await row()).toMatchObject({ generation: 2, state: 'active', failures: 0 });
  });

  verifies('oauth:refresh', 'is renewed when the MCP server rejects it, unless a newer one is there', async () => {
    const first = (await token()) as string;
    expect(await refreshesOf(() => token(first))).toBe(1);
    const second = last();
    expect(await refreshesOf(async () => expect(await token(first)).toBe(second))).toBe(0);
    expect(await refreshesOf(async () => expect(await token(first, siblings[0])).toBe(second))).toBe(0);
    expect(await refreshesOf(async () => expect(await token('never seen')).toBe(second))).toBe(0);
  });

  it('is used until it expires if it has no refresh token, and then needs a new authorization', async () => {
    const stingy = await startAuthorizationServer({ givesRefreshTokens: false });
    const behind = await stingy.protect(upstream.url);
    const other = newOwner();
    const service = app.get(CredentialsService);
    await authorize(app, other, behind.url);
    await age(app, other, 'due');
    const next = siblings[0].get(CredentialsService);
    const kept = await next.accessToken(other, behind.url);
    expect(kept).toBe(stingy.issued.at(-1)?.accessToken);
    await expect(service.accessToken(other, behind.url, kept as string)).rejects.toThrow('gave no refresh token');
    expect(stingy.refreshes).toBe(0);
    await stingy.close();
  });
});

describe('many callers', () => {
  verifies('oauth:single-refresh', '50 in three processes send one refresh, and all get its token', async () => {
    await makeDue('ended');
    const processes = [app, ...siblings];
    const callers = Array.from({ length: 50 }, (_, index) => token(undefined, processes[index % 3]));
    const count = await refreshesOf(() => Promise.all(callers));
    expect(count).toBe(1);
    expect(new Set(await Promise.all(callers))).toEqual(new Set([last()]));
    expect(await token()).toBe(last());
  });

  verifies(
    'oauth:single-refresh',
    'wait for a slow server with one database connection together, not one each',
    async () => {
      const roomy = await app.sibling({ DATABASE_POOL_MAX: '40' });
      await makeDue('ended');
      server.holdTokens();
      const waiting = Array.from({ length: 30 }, () => token(undefined, roomy));
      await until(() => server.held === 1, 'the refresh waits for its answer');
      for (let looks = 0; looks < 20; looks += 1) {
        expect(await roomy.get(CredentialsService).accessToken(newOwner(), guarded.url)).toBeNull();
      }
      const [{ waiters }] = await app.database.query(
        `SELECT count(*)::int AS waiters FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%upstream_credentials%'`,
      );
      expect(waiters).toBe(0);
      server.releaseTokens();
      expect(new Set(await Promise.all(waiting))).toEqual(new Set([last()]));
      await roomy.close();
    },
  );
});

/** Ends the database connection of the refresh that waits for the authorization server. */
async function loseConnection(): Promise<void> {
  const cut = await siblings[0].database.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND state = 'idle in transaction' AND query LIKE '%oauth_clients%'`,
  );
  expect(cut).toHaveLength(1);
}

describe('a process that dies', () => {
  verifies(
    'oauth:crash',
    'between answer and commit loses the rotated token, and a new authorization is required',
    async () => {
      await makeDue('ended');
      server.holdTokens();
      const dying = token().catch((error: unknown) => error);
      await until(() => server.held === 1, 'the server has rotated');
      server.releaseTokens('cut');
      expect(await dying).toBeInstanceOf(CredentialUnavailableError);
      await app.database.query('UPDATE upstream_credentials SET retry_at = NULL WHERE owner_id = $1', [owner.id]);
      await forget();
      await expect(token(undefined, siblings[0])).rejects.toBeInstanceOf(AuthorizationRequiredError);
      expect(await row()).toMatchObject({ state: 'required', sealed_tokens: null });
      await authorize(app, owner, guarded.url);
      expect(await token(undefined, siblings[0])).toBe(last());
    },
  );

  verifies(
    'oauth:crash',
    'is not what a database is that loses the connection: the rotated token is stored on another one',
    async () => {
      await makeDue('ended');
      server.holdTokens();
      const waiting = token();
      await until(() => server.held === 1, 'the server has rotated');
      await loseConnection();
      server.releaseTokens();
      expect(await waiting).toBe(last());
      expect(await refreshesOf(async () => expect(await token(undefined, siblings[0])).toBe(last()))).toBe(0);
      await makeDue('ended');
      expect(await token()).toBe(last());
    },
  );

  verifies('oauth:crash', 'never stores a rotated token over newer ones after a lost connection', async () => {
    await makeDue('ended');
    server.holdTokens();
    const waiting = token();
    await until(() => server.held === 1, 'the server has rotated');
    await loseConnection();
    // As another process would store its tokens.
    const newer = 'UPDATE upstream_credentials SET generation = generation + 1 WHERE owner_id = $1';
    await app.database.query(newer, [owner.id]);
    const stored = await row();
    server.releaseTokens();
    expect(await waiting).not.toBe(last());
    expect(await row()).toMatchObject({ generation: stored.generation, sealed_tokens: stored.sealed_tokens });
  });

  verifies('oauth:crash', 'stores the token of a running refresh when it is stopped', async () => {
    const stopping = await app.sibling();
    await makeDue('ended');
    server.holdTokens();
    const waiting = token(undefined, stopping);
    await until(() => server.held === 1, 'the server has rotated');
    let isClosed = false;
    const closed = stopping.close().then(() => (isClosed = true));
    // Long enough for all that ends with the process to end, if it did not wait.
    let looks = 0;
    await until(() => isClosed || (looks += 1) > 40, 'the stop has had its time');
    server.releaseTokens();
    expect(await waiting).toBe(last());
    await closed;
    await forget();
    expect(await refreshesOf(async () => expect(await token()).toBe(last()))).toBe(0);
  });
});

describe('while the authorization server', () => {
  verifies('oauth:outage', 'is down, a token that still lives is used, and one that ended is waited for', async () => {
    const old = await token();
    await makeDue();
    server.down();
    try {
      expect(await token()).toBe(old);
      expect(await row()).toMatchObject({ state: 'active', generation: 1, failures: 1 });
      await makeDue('ended');
      await expect(token()).rejects.toBeInstanceOf(CredentialUnavailableError);
      await expect(token(old as string)).rejects.toBeInstanceOf(CredentialUnavailableError);
    } finally {
      server.up();
    }
    await app.database.query('UPDATE upstream_credentials SET retry_at = NULL WHERE owner_id = $1', [owner.id]);
    await forget();
    expect(await token()).toBe(last());
    expect(await row()).toMatchObject({ state: 'active', generation: 2, failures: 0, retry_at: null });
  });

  verifies(
    'oauth:outage',
    'returns 500, 503, 429 or an invalid body, nothing is deleted, and retries back off',
    async () => {
      await makeDue('ended');
      for (const [failures, status] of [500, 503, 429, 404, 200].entries()) {
        server.failTokens(status);
        const from = Date.now();
        await expect(token()).rejects.toBeInstanceOf(CredentialUnavailableError);
        const to = Date.now();
        const { retry_at: retryAt, failures: counted } = await row();
        expect(counted).toBe(failures + 1);
        const pauseMs = 2_000 * 2 ** failures;
        expect(retryAt.getTime() - from).toBeGreaterThanOrEqual(pauseMs);
        expect(retryAt.getTime() - to).toBeLessThanOrEqual(pauseMs);
        // However long this takes, the pause is not over.
        await app.database.query(
          `UPDATE upstream_credentials SET retry_at = now() + interval '1 hour' WHERE owner_id = $1`,
          [owner.id],
        );
        await forget();
        expect(await refreshesOf(() => expect(token()).rejects.toBeInstanceOf(CredentialUnavailableError))).toBe(0);
        await app.database.query('UPDATE upstream_credentials SET retry_at = NULL WHERE owner_id = $1', [owner.id]);
        await forget();
      }
      expect(await token()).toBe(last());
    },
  );
});

describe('an authorization that has ended', () => {
  verifies(
    'oauth:revoked',
    'is deleted with the next step in its message; the server receives no further request',
    async () => {
      await makeDue('ended');
      // Somebody else uses the refresh token: the server takes that for theft, and ends the whole authorization.
      await stealRefreshToken();
      const error = (await token().catch((thrown: unknown) => thrown)) as AuthorizationRequiredError;
      expect(error).toBeInstanceOf(AuthorizationRequiredError);
      expect(error).toMatchObject({ kind: 'conflict', code: 'auth_required' });
      expect(error.message).toContain('invalid_grant');
      expect(await row()).toMatchObject({ state: 'required', sealed_tokens: null });
      const asked = await refreshesOf(async () => {
        for (const from of [app, ...siblings]) {
          await expect(token(undefined, from)).rejects.toBeInstanceOf(AuthorizationRequiredError);
        }
      });
      expect(asked).toBe(0);
      await authorize(app, owner, guarded.url);
      // At once, everywhere: what was refused a moment ago is looked up again.
      for (const from of [app, ...siblings]) expect(await token(undefined, from)).toBe(last());
    },
  );

  verifies('oauth:client-lost', 'is renewed by registering again when the server forgot Slipway', async () => {
    const other = newOwner();
    await authorize(app, other, guarded.url);
    const before = server.registrations;
    const [{ client_id: clientId }] = await app.database.query(
      'SELECT client_id FROM oauth_clients WHERE issuer = $1',
      [server.issuer],
    );
    await server.forgetClient(clientId);
    await makeDue('ended');
    await expect(token()).rejects.toThrow('invalid_client');
    expect(server.registrations).toBe(before);
    // The other access token is still valid. Only its renewal needs a new authorization.
    const service = app.get(CredentialsService);
    const still = await service.accessToken(other, guarded.url);
    expect(still).not.toBeNull();
    await authorize(app, owner, guarded.url);
    expect(server.registrations).toBe(before + 1);
    expect(await token()).toBe(last());
    await expect(service.accessToken(other, guarded.url, still as string)).rejects.toBeInstanceOf(
      AuthorizationRequiredError,
    );
    await authorize(app, other, guarded.url);
    expect(server.registrations).toBe(before + 1);
  });

  verifies('oauth:secrets', 'leaves no token behind in the table, before and after refreshes', async () => {
    await makeDue();
    await token();
    const stored = await storedText(app);
    expect(secretsOf(server).filter((secret) => stored.includes(secret))).toEqual([]);
  });

  /** Uses the current refresh token twice, as a thief would. */
  async function stealRefreshToken(): Promise<void> {
    const refreshToken = server.issued.at(-1)?.refreshToken ?? '';
    const use = () =>
      fetch(`${server.issuer}/token`, {
        method: 'POST',
        headers: { authorization: server.seen.findLast(({ endpoint }) => endpoint === 'token')?.authorization ?? '' },
        body: new URLSearchParams({ grant_type: 'refresh_token', refresh_token: refreshToken, resource: guarded.url }),
      });
    await use();
    expect((await use()).status).toBe(400);
  }
});

describe('a server that takes a refresh token again', () => {
  verifies('oauth:crash', 'gives the token again to the next process', async () => {
    const tolerant = await startAuthorizationServer({ toleratesReuse: true });
    const behind = await tolerant.protect(upstream.url);
    const other = newOwner();
    await authorize(app, other, behind.url);
    await age(app, other, 'ended');
    tolerant.holdTokens();
    const service = siblings[0].get(CredentialsService);
    const dying = service.accessToken(other, behind.url).catch((error: unknown) => error);
    await until(() => tolerant.held === 1, 'the server has answered');
    tolerant.releaseTokens('cut');
    expect(await dying).toBeInstanceOf(CredentialUnavailableError);
    await app.database.query('UPDATE upstream_credentials SET retry_at = NULL WHERE owner_id = $1', [other.id]);
    const next = siblings[1].get(CredentialsService);
    expect(await next.accessToken(other, behind.url)).toBe(tolerant.issued.at(-1)?.accessToken);
    await tolerant.close();
  });
});
