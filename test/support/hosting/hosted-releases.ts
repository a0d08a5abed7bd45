import { jest } from '@jest/globals';
import type { Invocation } from '../../../src/modules/logs/invocation.types.js';
import { InvocationsService } from '../../../src/modules/logs/ingest/invocations.service.js';
import { endAfterTest } from '../jest/leftovers.mjs';
import type { TestAccount, TestApp } from '../app.js';
import { createServer } from '../factories.js';
import { published, releaseIn, type ReleaseBody } from '../releases/releases.js';

/** A server with a hosted release. */
export interface HostedServer {
  /** Its qualified name. */
  name: string;
  /** URL of its run endpoint. */
  url: string;
  release: ReleaseBody;
}

/** Publishes a module to a server, a new one without a name, and waits for the end of the release. */
export async function publishHosted(
  app: TestApp,
  owner: TestAccount,
  module: string,
  { name, status = 'SUCCESS', ...payload }: { name?: string; status?: string; [member: string]: unknown } = {},
): Promise<HostedServer> {
  const server = name ?? (await createServer(app, owner));
  const id = await published(app, owner, server, { type: 'hosted', ...payload }, { module: Buffer.from(module) });
  const release = await releaseIn(app, owner, server, id, status);
  return { name: server, url: String(release.mcpUrl), release };
}

/** The log of a release as one text. */
export function logOf({ release }: HostedServer): string {
  return release.logs.map(({ stage, level, message }) => `${stage} ${level} ${message}`).join('\n');
}

/** Collects the invocations a process records until the test ends: whole ones, and parts of those recorded elsewhere. */
export function invocationsOf(app: TestApp): { records: Invocation[]; pieces: Invocation[] } {
  const service = app.get(InvocationsService);
  const heard = { records: [] as Invocation[], pieces: [] as Invocation[] };
  const record = service.record.bind(service);
  endAfterTest(() => jest.restoreAllMocks());
  jest.spyOn(service, 'record').mockImplementation((call) => {
    heard[call.method === undefined ? 'pieces' : 'records'].push(call);
    record(call);
  });
  return heard;
}
