import { randomUUID } from 'node:crypto';
import type { ReleaseCurrent } from '../../../src/modules/releases/releases.types.js';
import type { ReleaseType } from '../../../src/modules/servers/server.types.js';
import { PubSub } from '../../../src/platform/queue/pub-sub.js';
import type { TestAccount, TestApp } from '../app.js';
import { createServer } from '../factories.js';

/** Values of the current release of a server. */
export interface SeededRelease {
  type?: ReleaseType;
  upstreamUrl?: string | null;
  configSchema?: object;
}

/** A server as its row has it. */
export interface SeededServer {
  /** Its qualified name. */
  name: string;
  serverId: string;
  slug: string;
  releaseId: string;
}

/**
 * Makes a release current in the database, without a message: processes notice it when their cache of 5 s has expired. See
 * {@link announceCurrent}.
 */
export async function setCurrent(
  app: TestApp,
  name: string,
  { type = 'external_shttp', upstreamUrl = null, configSchema = {} }: SeededRelease,
): Promise<SeededServer> {
  const releaseId = randomUUID();
  const snapshot = { releaseId, type, upstreamUrl, runtime: null, configSchema, serverInfo: null, tools: null };
  const [namespace, server = ''] = name.split('/');
  const servers: { id: string; slug: string }[] = await app.database.query(
    `WITH done AS (
       UPDATE servers s SET current_release_id = $3, current_type = $4, snapshot = $5::jsonb
         FROM namespaces n WHERE n.id = s.namespace_id AND n.name = $1 AND s.name = $2 RETURNING s.id, s.slug
     ) SELECT id, slug FROM done`,
    [namespace, server, releaseId, type, JSON.stringify(snapshot)],
  );
  if (servers.length !== 1) throw new Error(`There is no server ${name}`);
  return { name, serverId: servers[0].id, slug: servers[0].slug, releaseId };
}

/** Publishes to every process that another release is current, as publishing does. */
export function announceCurrent(app: TestApp, { serverId, slug, releaseId }: SeededServer): void {
  app.get(PubSub).publish('releases.current', { serverId, slug, releaseId } satisfies ReleaseCurrent);
}

/** Makes an external release current without the API and informs every process. */
export async function publishExternal(
  app: TestApp,
  name: string,
  upstreamUrl: string,
  configSchema?: object,
): Promise<SeededServer> {
  const server = await setCurrent(app, name, { upstreamUrl, configSchema });
  announceCurrent(app, server);
  return server;
}

/** A new server whose current release is external. No process has cached it yet, so none is informed. */
export async function externalServer(
  app: TestApp,
  owner: TestAccount,
  upstreamUrl: string,
  configSchema?: object,
): Promise<SeededServer> {
  return setCurrent(app, await createServer(app, owner), { upstreamUrl, configSchema });
}
