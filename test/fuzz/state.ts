import type { ApiDocument } from '../support/documentation/api-document.js';
import { bodyOf } from './answers.js';
import { send, type Got } from './exchange.js';

/** Reads the API as one account. */
export class Reader {
  constructor(
    private readonly url: string,
    private readonly key: string,
  ) {}

  async get(target: string): Promise<Got> {
    const got = await send(this.url, { method: 'GET', target, headers: { authorization: `Bearer ${this.key}` } });
    if (got === null) throw new Error(`GET ${target} was cut`);
    return got;
  }

  /** All items of a list with pages. */
  async all(target: string, member: string): Promise<Record<string, unknown>[]> {
    const items: Record<string, unknown>[] = [];
    const mark = target.includes('?') ? '&' : '?';
    for (let page = 1; ; page++) {
      const body = bodyOf(await this.get(`${target}${mark}page=${page}&pageSize=50`));
      items.push(...((body[member] ?? []) as Record<string, unknown>[]));
      const { totalPages = 0 } = (body.pagination ?? {}) as { totalPages?: number };
      if (page >= totalPages) return items;
    }
  }

  /** All connections of a namespace. */
  async connections(namespace: string): Promise<Record<string, unknown>[]> {
    const items: Record<string, unknown>[] = [];
    for (let cursor: unknown = ''; cursor !== null;) {
      const rest = cursor === '' ? '' : `&cursor=${encodeURIComponent(String(cursor))}`;
      const body = bodyOf(await this.get(`/connect/${namespace}?limit=50${rest}`));
      items.push(...((body.connections ?? []) as Record<string, unknown>[]));
      cursor = body.nextCursor ?? null;
    }
    return items;
  }
}

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

/** Things that an account must have, by the answers to its requests. Names are in lower case. */
export class State {
  readonly namespaces = new Set<string>();
  readonly servers = new Set<string>();
  readonly connections = new Set<string>();
  readonly skills = new Set<string>();
  /** Ids of keys beside the account's own. */
  readonly keys = new Set<string>();
  /** `server release` */
  readonly releases = new Set<string>();
  /** `server name` */
  readonly secrets = new Set<string>();

  /** Takes over what a successful answer says. */
  apply({ operation, parameters, request, status, body }: Change): void {
    if (status >= 300) return;
    const text = (value: unknown) => (typeof value === 'string' ? value.toLowerCase() : '');
    const server = text(parameters.qualifiedName).replace(/^@/, '');
    const own = (namespace: unknown, name: unknown) => `${text(namespace)}/${text(name)}`;
    switch (operation) {
      case 'PUT /namespaces/{name}':
      case 'POST /namespaces':
        return void this.namespaces.add(text(body.name));
      case 'DELETE /namespaces/{name}':
        return this.removeNamespace(text(parameters.name));
      case 'PUT /servers/{qualifiedName}':
      case 'PUT /namespaces/{namespace}/servers/{server}':
        return void this.servers.add(own(body.namespace, body.server));
      case 'DELETE /servers/{qualifiedName}':
        return this.removeServer(server);
      case 'POST /servers/{qualifiedName}/transfer':
        return this.moveServer(server, own(body.namespace, body.server));
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
        return void this.skills.add(own(body.namespace, body.slug));
      case 'DELETE /skills/{namespace}/{slug}':
        return void this.skills.delete(own(parameters.namespace, parameters.slug));
      case 'POST /accounts/{accountId}/api-keys':
      case 'POST /accounts/{accountId}/api-keys/{keyId}/rotate':
        return void this.keys.add(String(body.id));
      case 'DELETE /accounts/{accountId}/api-keys/{keyId}':
        return void this.keys.delete(parameters.keyId ?? '');
    }
  }

  /** A namespace takes its connections and skills along; one with servers is not deleted. */
  private removeNamespace(namespace: string): void {
    this.namespaces.delete(namespace);
    for (const set of [this.connections, this.skills]) {
      for (const one of set) if (one.startsWith(`${namespace}/`)) set.delete(one);
    }
  }

  private removeServer(server: string): void {
    this.servers.delete(server.includes('/') ? server : `${server}/`);
    for (const set of [this.releases, this.secrets]) {
      for (const one of set) if (one.startsWith(`${server} `)) set.delete(one);
    }
  }

  private moveServer(from: string, to: string): void {
    this.servers.delete(from.includes('/') ? from : `${from}/`);
    this.servers.add(to);
    const name = to.replace(/\/$/, '');
    for (const set of [this.releases, this.secrets]) {
      for (const one of [...set]) {
        if (!one.startsWith(`${from} `)) continue;
        set.delete(one);
        set.add(`${name}${one.slice(from.length)}`);
      }
    }
  }

  /**
   * Compares what the API lists, reads and counts with what the answers said.
   *
   * @returns one line for each difference
   */
  async differences(reader: Reader, document: ApiDocument): Promise<string[]> {
    const found: string[] = [];
    const compare = (what: string, listed: Iterable<string>, expected: Set<string>) => {
      const there = new Set(listed);
      for (const one of expected) if (!there.has(one)) found.push(`${what} ${one} was created and is not listed`);
      for (const one of there) if (!expected.has(one)) found.push(`${what} ${one} is listed and was not created`);
    };
    /** Reads what must be readable, as the document says. @returns its body */
    const read = async (what: string, target: string, operation: string): Promise<unknown> => {
      const { status, body } = await reader.get(target);
      const schema = document.operations.find(({ name }) => name === operation)?.operation.responses[200]?.content;
      const json = schema?.['application/json']?.schema;
      if (status !== 200) {
        found.push(`${what} is not readable: ${status} ${body.toString().slice(0, 300)}`);
        return undefined;
      }
      const value = JSON.parse(body.toString()) as unknown;
      if (json) found.push(...document.departures(json, value).map((one) => `${what}: ${one}`));
      return value;
    };
    const text = (value: unknown) => String(value);
    const own = await reader.all('/namespaces', 'namespaces');
    compare(
      'namespace',
      own.map(({ name }) => text(name)),
      this.namespaces,
    );
    const connections: string[] = [];
    const skills: string[] = [];
    for (const namespace of this.namespaces) {
      for (const { connectionId } of await reader.connections(namespace)) {
        connections.push(`${namespace}/${text(connectionId)}`);
        const target = `/connect/${namespace}/${encodeURIComponent(text(connectionId))}`;
        await read(`connection ${text(connectionId)}`, target, 'GET /connect/{namespace}/{connectionId}');
      }
      for (const { slug } of await reader.all(`/skills?namespace=${namespace}`, 'skills')) {
        skills.push(`${namespace}/${text(slug)}`);
        await read(`skill ${text(slug)}`, `/skills/${namespace}/${text(slug)}`, 'GET /skills/{namespace}/{slug}');
        const download = await reader.get(`/skills/${namespace}/${text(slug)}/download`);
        if (download.status !== 200) found.push(`skill ${text(slug)} cannot be downloaded: ${download.status}`);
      }
    }
    compare('connection', connections, this.connections);
    compare('skill', skills, this.skills);
    const secrets: string[] = [];
    const releases: string[] = [];
    for (const server of this.servers) {
      const name = server.replace(/\/$/, '');
      const target = `/servers/${encodeURIComponent(name)}`;
      await read(`server ${name}`, target, 'GET /servers/{qualifiedName}');
      const listed = await read(`secrets of ${name}`, `${target}/secrets`, 'GET /servers/{qualifiedName}/secrets');
      secrets.push(...((listed ?? []) as { name: string }[]).map((secret) => `${name} ${secret.name}`));
      for (const { id } of await reader.all(`${target}/releases`, 'releases')) {
        releases.push(`${name} ${text(id)}`);
        const operation = 'GET /servers/{qualifiedName}/releases/{id}';
        await read(`release ${text(id)}`, `${target}/releases/${text(id)}`, operation);
      }
    }
    compare('secret', secrets, this.secrets);
    compare('release', releases, this.releases);
    const { apiKeys = [] } = bodyOf(await reader.get('/accounts/me/api-keys')) as {
      apiKeys?: { id: string; name: string }[];
    };
    compare(
      'key',
      apiKeys.filter(({ name }) => name !== OWN_KEY).map(({ id }) => id),
      this.keys,
    );
    found.push(...(await this.miscounts(reader)));
    return found;
  }

  /** The quotas that differ from what there is. */
  private async miscounts(reader: Reader): Promise<string[]> {
    const { limits = [] } = bodyOf(await reader.get('/accounts/me/usage')) as {
      limits?: { name: string; used?: number }[];
    };
    const counts: Record<string, number> = {
      namespaces: this.namespaces.size,
      servers: this.servers.size,
      connections: this.connections.size,
      skills: this.skills.size,
      releases: this.releases.size,
      apiKeys: this.keys.size + 1,
    };
    return Object.entries(counts).flatMap(([name, count]) => {
      const used = limits.find((limit) => limit.name === name)?.used;
      return used === count ? [] : [`the quota ${name} counts ${used} of ${count}`];
    });
  }
}

/** The name of the key that an account of the fuzzer has from the start. */
export const OWN_KEY = 'fuzz';
