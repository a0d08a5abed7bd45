/** What an account must have by the answers to its requests, compared with what the API lists, reads and counts. */
import type { ApiDocument } from '../support/documentation/api-document.js';
import { bodyOf } from './answers.js';
import { send, type Got } from './exchange.js';

type Item = Record<string, string>;

/** The name of the key that an account of the fuzzer has from the start. */
export const FIRST_KEY = 'fuzz';

/** An answer that may have changed something. */
export interface Change {
  /** `PUT /namespaces/{name}` */
  operation: string;
  parameters: Record<string, string>;
  /** The JSON that was sent. */
  request: Record<string, unknown>;
  status: number;
  body: Record<string, unknown>;
}

/** Renames what begins with a text, or deletes it. */
function rename(names: Set<string>, from: string, to?: string): void {
  for (const name of [...names].filter((all) => all.startsWith(from))) {
    names.delete(name);
    if (to !== undefined) names.add(to + name.slice(from.length));
  }
}

/** Names are in lower case. */
export class State {
  readonly namespaces = new Set<string>();
  /** `namespace/server` */
  readonly servers = new Set<string>();
  readonly connections = new Set<string>();
  readonly skills = new Set<string>();
  /** Ids of keys beside {@link FIRST_KEY}. */
  readonly apiKeys = new Set<string>();
  /** `server release` */
  readonly releases = new Set<string>();
  /** `server name` */
  readonly secrets = new Set<string>();

  /** Takes over what a successful answer says. */
  apply({ operation, parameters, request, status, body }: Change): void {
    if (status >= 300) return;
    const text = (value: unknown) => (typeof value === 'string' ? value.toLowerCase() : '');
    const server = text(parameters.qualifiedName).replace(/^@/, '');
    const created = `${text(body.namespace)}/${text(body.server ?? body.slug)}`;
    switch (operation) {
      case 'PUT /namespaces/{name}':
      case 'POST /namespaces':
        return void this.namespaces.add(text(body.name));
      case 'DELETE /namespaces/{name}':
        // Its connections and skills go with it; one with servers is not deleted.
        this.namespaces.delete(text(parameters.name));
        for (const names of [this.connections, this.skills]) rename(names, `${text(parameters.name)}/`);
        return;
      case 'PUT /servers/{qualifiedName}':
      case 'PUT /namespaces/{namespace}/servers/{server}':
        return void this.servers.add(created);
      case 'DELETE /servers/{qualifiedName}':
      case 'POST /servers/{qualifiedName}/transfer': {
        const isMoved = operation.startsWith('POST');
        this.servers.delete(server.includes('/') ? server : `${server}/`);
        if (isMoved) this.servers.add(created);
        const to = isMoved ? `${created.replace(/\/$/, '')} ` : undefined;
        for (const names of [this.releases, this.secrets]) rename(names, `${server} `, to);
        return;
      }
      case 'PUT /servers/{qualifiedName}/secrets':
        return void this.secrets.add(`${server} ${String(request.name)}`);
      case 'DELETE /servers/{qualifiedName}/secrets/{secretName}':
        return void this.secrets.delete(`${server} ${parameters.secretName}`);
      case 'PUT /servers/{qualifiedName}/releases':
        return void this.releases.add(`${server} ${String(body.deploymentId)}`);
      case 'PUT /connect/{namespace}/{connectionId}':
      case 'POST /connect/{namespace}':
        return void this.connections.add(`${text(parameters.namespace)}/${String(body.connectionId)}`);
      case 'DELETE /connect/{namespace}/{connectionId}':
        return void this.connections.delete(`${text(parameters.namespace)}/${parameters.connectionId}`);
      case 'POST /skills':
      case 'PUT /skills/{namespace}/{slug}':
      case 'PUT /skills/{namespace}/{slug}/upload':
        return void this.skills.add(created);
      case 'DELETE /skills/{namespace}/{slug}':
        return void this.skills.delete(`${text(parameters.namespace)}/${text(parameters.slug)}`);
      case 'POST /accounts/{accountId}/api-keys':
      case 'POST /accounts/{accountId}/api-keys/{keyId}/rotate':
        return void this.apiKeys.add(String(body.id));
      case 'DELETE /accounts/{accountId}/api-keys/{keyId}':
        return void this.apiKeys.delete(parameters.keyId ?? '');
    }
  }

  /** @returns one line for each difference between this state and the API at `url`, read with this key */
  async differences(url: string, key: string, document: ApiDocument): Promise<string[]> {
    const differences: string[] = [];
    const get = async (target: string): Promise<Got> => {
      const got = await send(url, { method: 'GET', target, headers: { authorization: `Bearer ${key}` } });
      if (got === null) throw new Error(`GET ${target} was cut`);
      return got;
    };
    /** All items of a list, with pages or with cursors. */
    const all = async (target: string, member: string): Promise<Item[]> => {
      const items: Item[] = [];
      for (let rest: string | null = ''; rest !== null;) {
        const body = bodyOf(await get(`${target}${rest && (target.includes('?') ? '&' : '?')}${rest}`));
        items.push(...((body[member] ?? []) as Item[]));
        const { currentPage = 1, totalPages = 0 } = (body.pagination ?? {}) as Record<string, number | undefined>;
        if (typeof body.nextCursor === 'string') rest = `cursor=${encodeURIComponent(body.nextCursor)}`;
        else rest = currentPage < totalPages ? `page=${currentPage + 1}` : null;
      }
      return items;
    };
    /** Reads what must be readable, as the document says. @returns its body */
    const read = async (target: string, path: string): Promise<unknown> => {
      const { status, body } = await get(target);
      if (status !== 200) {
        differences.push(`${target} is not readable: ${status} ${body.toString().slice(0, 300)}`);
        return undefined;
      }
      const operation = document.operations.find(({ name }) => name === `GET ${path}`)?.operation;
      const schema = operation?.responses[200]?.content?.['application/json']?.schema;
      if (schema === undefined) return undefined;
      const value = JSON.parse(body.toString()) as unknown;
      differences.push(...document.departures(schema, value).map((departure) => `${target}: ${departure}`));
      return value;
    };
    const listed: Record<string, string[]> = { connections: [], skills: [], releases: [], secrets: [] };
    listed.namespaces = (await all('/namespaces', 'namespaces')).map(({ name }) => name);
    for (const namespace of this.namespaces) {
      for (const { connectionId } of await all(`/connect/${namespace}`, 'connections')) {
        listed.connections.push(`${namespace}/${connectionId}`);
        await read(`/connect/${namespace}/${encodeURIComponent(connectionId)}`, '/connect/{namespace}/{connectionId}');
      }
      for (const { slug } of await all(`/skills?namespace=${namespace}`, 'skills')) {
        listed.skills.push(`${namespace}/${slug}`);
        await read(`/skills/${namespace}/${slug}`, '/skills/{namespace}/{slug}');
        await read(`/skills/${namespace}/${slug}/download`, '/skills/{namespace}/{slug}/download');
      }
    }
    for (const server of this.servers) {
      const name = server.replace(/\/$/, '');
      const target = `/servers/${encodeURIComponent(name)}`;
      await read(target, '/servers/{qualifiedName}');
      const secrets = (await read(`${target}/secrets`, '/servers/{qualifiedName}/secrets')) as Item[] | undefined;
      listed.secrets.push(...(secrets ?? []).map((secret) => `${name} ${secret.name}`));
      for (const { id } of await all(`${target}/releases`, 'releases')) {
        listed.releases.push(`${name} ${id}`);
        await read(`${target}/releases/${id}`, '/servers/{qualifiedName}/releases/{id}');
      }
    }
    const keys = await all('/accounts/me/api-keys', 'apiKeys');
    listed.apiKeys = keys.filter(({ name }) => name !== FIRST_KEY).map(({ id }) => id);
    const { namespaces, servers, connections, skills, apiKeys, releases, secrets } = this;
    for (const [kind, expected] of Object.entries({ namespaces, connections, skills, apiKeys, releases, secrets })) {
      const names = new Set(listed[kind]);
      for (const name of new Set([...expected, ...names])) {
        if (!names.has(name)) differences.push(`${kind}: ${name} was created and is not listed`);
        if (!expected.has(name)) differences.push(`${kind}: ${name} is listed and was not created`);
      }
    }
    const { limits = [] } = bodyOf(await get('/accounts/me/usage')) as { limits?: { name: string; used?: number }[] };
    for (const [kind, { size }] of Object.entries({ namespaces, servers, connections, skills, releases, apiKeys })) {
      const used = limits.find(({ name }) => name === kind)?.used;
      const count = size + Number(kind === 'apiKeys');
      if (used !== count) differences.push(`the quota ${kind} counts ${used} of ${count}`);
    }
    return differences;
  }
}
