import { expect } from '@jest/globals';
import supertest from 'supertest';
import type { TestAccount, TestApp } from '../app.js';
import { until } from '../until.js';

/** A release as the API returns it. */
export interface ReleaseBody {
  id: string;
  status: string;
  logs: { stage: string; level: string; message: string; timestamp: string; error?: { message: string } }[];
  [field: string]: unknown;
}

/** Sends a publish form as published tools do: `payload` a text part, the rest files. */
export function publish(
  app: TestApp,
  owner: TestAccount | undefined,
  name: string,
  payload: object | string,
  files: Record<string, Buffer> = {},
): supertest.Test {
  let request = supertest(app.url)
    .put(`/servers/${encodeURIComponent(name)}/releases`)
    .field('payload', typeof payload === 'string' ? payload : JSON.stringify(payload));
  if (owner) request = request.set('authorization', `Bearer ${owner.key}`);
  for (const [part, content] of Object.entries(files)) request = request.attach(part, content, `${part}.bin`);
  return request;
}

/** Publishes and returns the release's id. */
export async function published(
  app: TestApp,
  owner: TestAccount,
  name: string,
  payload: object,
  files: Record<string, Buffer> = {},
): Promise<string> {
  const response = await publish(app, owner, name, payload, files);
  expect({ status: response.status, body: response.body as unknown }).toMatchObject({ status: 202 });
  return (response.body as { deploymentId: string }).deploymentId;
}

/** A release as it is now. @param id its id, or `latest` */
export async function readRelease(app: TestApp, owner: TestAccount, name: string, id: string): Promise<ReleaseBody> {
  const response = await app.as(owner).get(`/servers/${encodeURIComponent(name)}/releases/${id}`);
  expect(response.status).toBe(200);
  return response.body as ReleaseBody;
}

/** Waits until a release has one of these statuses. */
export async function releaseIn(
  app: TestApp,
  owner: TestAccount,
  name: string,
  id: string,
  status: string | string[],
  timeoutMs?: number,
): Promise<ReleaseBody> {
  const statuses = [status].flat();
  return until(
    async () => {
      const release = await readRelease(app, owner, name, id);
      if (statuses.includes(release.status)) return release;
      throw new Error(JSON.stringify(release, null, 2));
    },
    `the release is ${statuses.join(' or ')}`,
    timeoutMs,
  );
}

/** Publishes an external release and waits for its end. */
export async function publishExternal(
  app: TestApp,
  owner: TestAccount,
  name: string,
  payload: { upstreamUrl: string; [member: string]: unknown },
  status = 'SUCCESS',
): Promise<ReleaseBody> {
  const id = await published(app, owner, name, { type: 'external', ...payload });
  return releaseIn(app, owner, name, id, status);
}

/** The columns of a release that the API does not show. */
export interface ReleaseRow {
  status: string;
  stage: string;
  attempt: number;
  recoveries: number;
  lease_holder: string | null;
  lease_until: Date | null;
  sealed_scan_credentials: string | null;
  snapshot: Record<string, unknown> | null;
}

/** A release's row as it is now. */
export async function releaseRow(app: Pick<TestApp, 'database'>, id: string): Promise<ReleaseRow> {
  const [row] = await app.database.query<ReleaseRow[]>('SELECT * FROM releases WHERE id = $1', [id]);
  return row;
}

/** Columns of `servers` about the current release. */
export interface ServerRow {
  id: string;
  slug: string;
  current_release_id: string | null;
  current_type: string | null;
  scan_passed: boolean | null;
  description: string;
  snapshot: Record<string, unknown> | null;
}

/** A server's row as it is now. */
export async function serverRow(app: Pick<TestApp, 'database'>, name: string): Promise<ServerRow> {
  const [namespace, server = ''] = name.split('/');
  const [row] = await app.database.query<ServerRow[]>(
    'SELECT s.* FROM servers s JOIN namespaces n ON n.id = s.namespace_id WHERE n.name = $1 AND s.name = $2',
    [namespace, server],
  );
  return row;
}

/** Stores a release without the API, in any state. @returns its id */
export async function insertRelease(
  app: Pick<TestApp, 'database'>,
  name: string,
  columns: Record<string, unknown> = {},
): Promise<string> {
  const { id: serverId } = await serverRow(app, name);
  const values = { server_id: serverId, type: 'external_shttp', status: 'SUCCESS', ...columns };
  const names = Object.keys(values);
  const [row] = await app.database.query<{ id: string }[]>(
    `INSERT INTO releases (${names.join(', ')}) VALUES (${names.map((_, at) => `$${at + 1}`).join(', ')}) RETURNING id`,
    Object.values(values),
  );
  return row.id;
}

/** Path below the releases of a server. */
export function releasesPath(name: string, rest = ''): string {
  return `/servers/${encodeURIComponent(name)}/releases${rest}`;
}

/** The log as `stage level` pairs. */
export function steps({ logs }: ReleaseBody): string[] {
  return logs.map(({ stage, level }) => `${stage} ${level}`);
}

/** The line with the reason of the failure. */
export function errorOf({ logs }: ReleaseBody): string {
  return logs.find(({ level }) => level === 'error')?.message ?? '';
}
