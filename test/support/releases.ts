import { expect } from '@jest/globals';
import supertest from 'supertest';
import type { TestAccount, TestApp } from './app.js';
import { until } from './until.js';

/** A release as the API tells it. */
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
  ...statuses: string[]
): Promise<ReleaseBody> {
  return until(
    async () => {
      const release = await readRelease(app, owner, name, id);
      if (statuses.includes(release.status)) return release;
      throw new Error(JSON.stringify(release, null, 2));
    },
    `the release is ${statuses.join(' or ')}`,
  );
}
