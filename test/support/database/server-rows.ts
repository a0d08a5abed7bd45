import { randomUUID } from 'node:crypto';
import type { ServerSnapshot } from '../../../src/modules/servers/server.types.js';
import { ServerCardsService } from '../../../src/modules/servers/server-cards.service.js';
import { uniqueName, type TestApp } from '../app.js';
import { serverRow } from '../releases/releases.js';

/** Gives a server a current release, past the API and its pipeline: a snapshot as the pipeline writes it, mostly made up. */
export async function releaseServer(
  app: TestApp,
  qualifiedName: string,
  members: Partial<ServerSnapshot> = {},
  scanPassed: boolean | null = true,
): Promise<ServerSnapshot> {
  const snapshot: ServerSnapshot = {
    releaseId: randomUUID(),
    type: 'external_shttp',
    upstreamUrl: 'http://upstream.invalid/mcp',
    runtime: null,
    configSchema: {},
    serverInfo: null,
    tools: [],
    resources: [],
    resourceTemplates: [],
    prompts: [],
    ...members,
  };
  const [namespace, name = ''] = qualifiedName.split('/');
  await app.database.query(
    `UPDATE servers s SET current_release_id = $3, current_type = $4, snapshot = $5, scan_passed = $6
       FROM namespaces n WHERE n.id = s.namespace_id AND n.name = $1 AND s.name = $2`,
    [namespace, name, snapshot.releaseId, snapshot.type, JSON.stringify(snapshot), scanPassed],
  );
  return snapshot;
}

/** Values of a seeded server. The others are generated. */
export interface ServerSeed {
  name?: string;
  displayName?: string;
  description?: string;
  unlisted?: boolean;
  useCount?: number;
}

/** Writes published servers past the API, the first one as the newest. Returns their names. */
export async function seedServers(app: TestApp, namespace: string, seeds: ServerSeed[]): Promise<string[]> {
  const rows = seeds.map(({ name = uniqueName('server'), displayName, description, unlisted, useCount }) => ({
    name,
    title: displayName ?? name,
    description: description ?? '',
    unlisted: unlisted ?? false,
    uses: useCount ?? 0,
  }));
  await app.database.query(
    `INSERT INTO servers (namespace_id, name, display_name, description, slug, unlisted, use_count, popularity, created_at, current_type)
     SELECT n.id, row ->> 'name', row ->> 'title', row ->> 'description', n.name || '--' || (row ->> 'name'),
            (row ->> 'unlisted')::boolean, (row ->> 'uses')::bigint,
            floor(4 * log(2, (row ->> 'uses')::bigint + 1)), now() - place * interval '1 second', 'external_shttp'
       FROM namespaces n, jsonb_array_elements($2::jsonb) WITH ORDINALITY AS given(row, place) WHERE n.name = $1`,
    [namespace, JSON.stringify(rows)],
  );
  return rows.map(({ name }) => name);
}

/** The id of a server. */
export async function serverIdOf(app: TestApp, qualifiedName: string): Promise<string> {
  return (await serverRow(app, qualifiedName))?.id ?? '';
}

/** A server's path. */
export function pathOf(qualifiedName: string, rest = ''): string {
  return `/servers/${encodeURIComponent(qualifiedName)}${rest}`;
}

/** The members of a server's card that the registry itself declares: without those that other modules add. */
export function ownMembers(app: TestApp, card: Record<string, unknown>): Record<string, unknown> {
  const added = app.get(ServerCardsService).keys;
  return Object.fromEntries(Object.entries(card).filter(([key]) => !added.includes(key)));
}
