import { randomUUID } from 'node:crypto';
import { expect, jest } from '@jest/globals';
import { AuthorizationsService } from '../../../src/modules/oauth/authorizations.service.js';
import { ConnectionSetupService } from '../../../src/modules/connections/setup/connection-setup.service.js';
import { ReleaseResumptionService } from '../../../src/modules/releases/release-resumption.service.js';
import type { CredentialOwner, CredentialOwners } from '../../../src/modules/oauth/credentials.types.js';
import type { TestApp } from '../app.js';
import type { AuthorizationServer } from './authorization-server.js';
import { newPerson, type Person } from './person.js';

/** A new owner. No server or connection has its id, which credentials do not check. */
export function newOwner(kind: CredentialOwner['kind'] = 'server'): CredentialOwner {
  return { kind, id: randomUUID() };
}

/** A person who uses this service. */
export function personAt(app: TestApp): Person {
  return newPerson({ publicUrl: app.env.baseUrl, url: app.url });
}

/** Begins an authorization; returns its link, which the operator reads. */
export async function beginSetup(
  app: TestApp,
  owner: CredentialOwner,
  upstreamUrl: string,
  { challenge = null, label = 'acme/weather' }: { challenge?: string[] | null; label?: string } = {},
): Promise<string> {
  // The servers of these tests have no releases, one of which would be waiting.
  jest.spyOn(app.get(ReleaseResumptionService), 'isAuthorizationPending').mockResolvedValue(true);
  for (const owners of [ReleaseResumptionService, ConnectionSetupService]) {
    jest.spyOn(app.get<CredentialOwners>(owners), 'mayAuthorize').mockResolvedValue(true);
  }
  const authorizations = app.get(AuthorizationsService);
  await authorizations.begin(owner, { upstreamUrl, challenge, label });
  const { id: accountId } = app.operator;
  const [{ id: keyId }] = await app.database.query('SELECT id FROM api_keys WHERE account_id = $1', [accountId]);
  return (await authorizations.openLink(owner, { accountId, keyId, loginsEpoch: 0 })) ?? '';
}

/** The whole way: link, page, authorization server and back. */
export async function authorize(app: TestApp, owner: CredentialOwner, upstreamUrl: string): Promise<void> {
  const link = await beginSetup(app, owner, upstreamUrl);
  const person = personAt(app);
  expect(await person.open(link)).toMatchObject({ status: 200 });
  const done = await person.press(link);
  expect(done.html).toContain('Authorized');
  expect(done.status).toBe(200);
}

/** Lets the token of an owner be due: at once, or past its end too. */
export async function age(app: TestApp, owner: CredentialOwner, how: 'due' | 'ended'): Promise<void> {
  const [expires, due] = how === 'due' ? ["'5 minutes'", "'-1 second'"] : ["'-1 second'", "'-5 minutes'"];
  const [, changed] = await app.database.query(
    `UPDATE upstream_credentials SET expires_at = now() + interval ${expires}, due_at = now() + interval ${due}
      WHERE owner_id = $1`,
    [owner.id],
  );
  expect(changed).toBe(1);
}

/** Everything the database holds about credentials, as one text. */
export async function storedText(app: TestApp): Promise<string> {
  const tables = ['oauth_clients', 'upstream_credentials', 'pending_authorizations'];
  const rows = await Promise.all(tables.map((table) => app.database.query(`SELECT t::text AS row FROM ${table} t`)));
  return rows
    .flat()
    .map(({ row }: { row: string }) => row)
    .join('\n');
}

/** The secrets an authorization server and we exchanged so far. */
export function secretsOf(server: AuthorizationServer): string[] {
  const tokens = server.issued.flatMap(({ accessToken, refreshToken }) => [accessToken, refreshToken ?? accessToken]);
  const verifiers = server.seen.flatMap(({ params }) => params.getAll('code_verifier'));
  const states = server.seen.flatMap(({ params }) => params.getAll('state'));
  const basics = server.seen.flatMap(({ authorization }) => {
    const [, base64] = /^Basic (.+)$/.exec(authorization ?? '') ?? [];
    return base64 === undefined ? [] : [Buffer.from(base64, 'base64').toString().split(':')[1]];
  });
  return [...new Set([...tokens, ...verifiers, ...states, ...basics])];
}
