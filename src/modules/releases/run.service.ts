import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { Env } from '../../config/env.js';
import type { Channel, McpCall, McpReply } from '../../mcp/channel.js';
import { HttpChannels } from '../../mcp/channels/http-channels.js';
import type { HttpTarget } from '../../mcp/channels/http-wire.js';
import { FrontRefusal, McpMethodNotAllowedError } from '../../mcp/front/front.errors.js';
import { HttpFront } from '../../mcp/front/http-front.js';
import { LinkPool } from '../../mcp/link-pool.js';
import { RowCache } from '../../platform/database/row-cache.js';
import { RelayService } from '../../platform/queue/relay.service.js';
import { ServerNotFoundError } from '../servers/servers.errors.js';
import { SERVER_CHANGED_TOPIC, SERVER_DELETED_TOPIC } from '../servers/server.types.js';
import { ServerLinksService } from '../servers/server-links.service.js';
import { ServersService } from '../servers/servers.service.js';
import { InvocationRecord, type Answered } from './invocation-record.js';
import { InvocationObserver } from './invocation.types.js';
import { RELEASE_CURRENT_TOPIC, type GivenValues, type ReleaseCurrent, type RunFormField } from './releases.types.js';
import { inputNames, toRunForm, valuesFor, valuesOf, type RunValues } from './run-input.js';
import { RunLink } from './run-link.js';
import { NotRunnableError, RunPathNotFoundError, ServerGoneError } from './run.errors.js';
import { toRunnable, type Runnable, type RunnableRelease } from './runnable.js';
import { ServerChannel } from './server-channel.js';

/** A server is believed this long; a change also arrives over the relay, at once. */
const SERVER_CACHED_MS = 5_000;
const SERVERS_CACHED_MAX = 50_000;

/** Open upstream sessions at most: one for each release, account, and set of values its callers send. */
const LINKS_MAX = 5_000;

/** Marks the keys of servers that are known by their id; no slug holds a colon. */
const BY_ID = 'id:';

/** A call that came by a connection stands in the records as if it had come by the run address. */
const BY_CONNECTION: Answered = { method: 'POST', status: 200 };

/** What no slug is made of is not looked for. */
const SLUG = /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/;

/** A connection to a server, which keeps its own values and its own upstream session. */
export interface ServerUser extends GivenValues {
  /** What the server is called, also when it is gone. */
  serverName: string;
  /** The token for the release's upstream, if the connection holds one: `HttpTarget.bearer`, told which upstream. */
  bearer?: (upstreamUrl: string, rejected?: string) => Promise<string | null>;
}

/** Who calls, and what they call below the server's address. */
export interface RunCaller {
  keyId: string;
  accountId: string;
  /** The decoded segments behind the slug. */
  path: string[];
}

/** Runs the current releases of servers: one live channel for each account and set of values, shared by its callers. */
@Injectable()
export class RunService implements OnModuleInit, OnApplicationShutdown {
  private readonly links = new LinkPool<RunLink>('run', LINKS_MAX);
  private readonly servers = new RowCache<Runnable>((key) => this.load(key), {
    max: SERVERS_CACHED_MAX,
    ttlMs: SERVER_CACHED_MS,
  });

  constructor(
    private readonly registry: ServersService,
    private readonly addresses: ServerLinksService,
    private readonly observer: InvocationObserver,
    private readonly relay: RelayService,
    private readonly channels: HttpChannels,
    private readonly env: Env,
    private readonly front: HttpFront,
  ) {}

  async onModuleInit(): Promise<void> {
    await this.relay.subscribe<{ id: string }>(SERVER_CHANGED_TOPIC, ({ id }) => this.forget(id));
    await this.relay.subscribe<{ id: string }>(SERVER_DELETED_TOPIC, ({ id }) => this.drop(id, null));
    await this.relay.subscribe<ReleaseCurrent>(RELEASE_CURRENT_TOPIC, ({ serverId, releaseId }) =>
      this.drop(serverId, releaseId),
    );
  }

  /** The server behind a slug. No query while it was read in the last 5 s. @throws ServerNotFoundError */
  async find(slug: string): Promise<Runnable> {
    const found = SLUG.test(slug) ? await this.servers.get(slug) : null;
    if (!found) throw new ServerNotFoundError();
    return found;
  }

  /**
   * A channel of its own to a server's current release, for one connection; it follows the server to later releases. Calls
   * are recorded and counted like those at the run address, without a way through HTTP. What is missing rejects at the
   * call: ServerGoneError, NotRunnableError, InputRequiredError, InputInvalidError.
   */
  channelFor(serverId: string, user: ServerUser): Channel {
    return new ServerChannel<UsableRelease>({
      current: () => this.usable(serverId, user.serverName),
      connect: ({ runnable, release }) => {
        const values = valuesFor(release.config, user);
        const { href } = release.upstream;
        // A value that goes on as the authorization header is meant to, and no token takes its place.
        const hasOwn = Object.keys(values.headers).some((name) => name.toLowerCase() === 'authorization');
        const { bearer } = user;
        const token = hasOwn || !bearer ? undefined : (rejected?: string) => bearer(href, rejected);
        return this.linkTo(runnable, release, this.channel(release.upstream, values, token));
      },
      watch: (call, work) => this.watched(serverId, call, work),
    });
  }

  /**
   * What a person may fill in for a server, and where its current release is.
   *
   * @throws ServerGoneError, NotRunnableError
   */
  async formOf(
    serverId: string,
    { serverName, ...given }: Omit<ServerUser, 'bearer'>,
  ): Promise<{ upstream: string; fields: RunFormField[] }> {
    const { release } = await this.usable(serverId, serverName);
    return { upstream: release.upstream.href, fields: toRunForm(release.config, given) };
  }

  /**
   * Where a server's current release runs, for those who look at the way there. Its owner's to know: tell nobody else.
   *
   * @throws ServerGoneError, NotRunnableError
   */
  async upstreamOf(serverId: string, serverName: string): Promise<URL> {
    return (await this.usable(serverId, serverName)).release.upstream;
  }

  /**
   * Answers one POST, GET or DELETE to a server's address; only POSTs are recorded. Failures of the server, and values
   * that lack, become JSON-RPC answers.
   *
   * @param find which server; asked again when the body is there, so that a slow upload meets the release of its end
   * @throws RunPathNotFoundError, McpMethodNotAllowedError, what `find` and the front throw
   */
  async forward(
    find: () => Promise<Runnable>,
    { keyId, accountId, path }: RunCaller,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    let runnable = await find();
    const isPost = request.method === 'POST';
    if (isPost) this.observer.started(runnable.serverId);
    const record = isPost && this.observer.wantsRecords ? new InvocationRecord() : undefined;
    const open = async () => {
      runnable = await find();
      const channel = this.channelOrRefusal(runnable, accountId, request);
      if (isPost && !(channel instanceof FrontRefusal)) this.registry.countUse(runnable.serverId);
      return { channel, account: accountId, principal: keyId, target: runnable.serverId };
    };
    try {
      if (!isMcp(path)) this.refusePath(runnable, isPost, response);
      await this.front.serve(request, response, open, record);
    } catch (error) {
      record?.threw(error);
      throw error;
    } finally {
      if (record) {
        const { serverId, release } = runnable;
        const url = [this.addresses.run(runnable.slug), ...path.map(encodeURIComponent)].join('/');
        this.observer.finished(
          record.finish({ serverId, releaseId: release.id }, url, {
            method: request.method ?? 'POST',
            status: response.statusCode,
          }),
        );
      }
    }
  }

  /**
   * The live channel to a server's current release, for one account's callers who send what this request carries. Never
   * for two accounts: a server may remember things in its session.
   *
   * @throws NotRunnableError, InputRequiredError, InputInvalidError
   */
  channelTo(runnable: Runnable, accountId: string, request: Pick<IncomingMessage, 'headers' | 'url'>): Channel {
    const { release } = runnable;
    if ('reason' in release) throw new NotRunnableError(release.reason);
    const { id, config } = release;
    const values = config.fields.length === 0 ? null : valuesOf(config, request);
    const key = [id, accountId, ...(values ? [hashOf(values)] : [])].join(' ');
    const held = this.links.get(key);
    if (held) return held;
    const link = this.linkTo(runnable, release, this.channel(release.upstream, values));
    this.links.put(key, link);
    return link;
  }

  onApplicationShutdown(): Promise<void> {
    return this.links.close();
  }

  /** @throws RunPathNotFoundError, McpMethodNotAllowedError */
  private refusePath({ name, slug }: Runnable, isPost: boolean, response: ServerResponse): never {
    if (isPost) throw new RunPathNotFoundError(name, this.addresses.run(slug));
    response.setHeader('allow', 'POST');
    throw new McpMethodNotAllowedError();
  }

  private channelOrRefusal(runnable: Runnable, accountId: string, request: IncomingMessage): Channel | FrontRefusal {
    try {
      return this.channelTo(runnable, accountId, request);
    } catch (error) {
      if (error instanceof FrontRefusal) return error;
      throw error;
    }
  }

  private linkTo({ serverId, name }: Runnable, { id, upstream, config }: RunnableRelease, channel: Channel): RunLink {
    return new RunLink(channel, {
      serverId,
      releaseId: id,
      serverName: name,
      upstream,
      inputs: inputNames(config),
    });
  }

  /** Counts and records a call that came by a connection. */
  private async watched(serverId: string, call: McpCall, work: () => Promise<McpReply>): Promise<McpReply> {
    this.observer.started(serverId);
    this.registry.countUse(serverId);
    if (!this.observer.wantsRecords) return work();
    const record = new InvocationRecord();
    record.asked(call.method, call.params === undefined ? undefined : JSON.parse(call.params));
    try {
      return await work();
    } catch (error) {
      record.threw(error);
      throw error;
    } finally {
      // What came of the call is its caller's, also while the database is away.
      const known = await this.servers.get(`${BY_ID}${serverId}`).catch(() => null);
      const url = known ? this.addresses.run(known.slug) : '';
      if (known) this.observer.finished(record.finish({ serverId, releaseId: known.release.id }, url, BY_CONNECTION));
    }
  }

  private channel(upstream: URL, values: RunValues | null, bearer?: HttpTarget['bearer']): Channel {
    const url = new URL(upstream);
    for (const [name, value] of values?.query ?? []) url.searchParams.append(name, value);
    return this.channels.channelTo({
      url,
      headers: values?.headers ?? {},
      bearer,
      connectTimeoutMs: this.env.upstreamConnectTimeoutMs,
    });
  }

  /** @throws ServerGoneError, NotRunnableError */
  private async usable(serverId: string, serverName: string): Promise<UsableRelease> {
    const runnable = await this.servers.get(`${BY_ID}${serverId}`);
    if (!runnable) throw new ServerGoneError(serverName);
    return usable(runnable);
  }

  private async load(key: string): Promise<Runnable | null> {
    const by = key.startsWith(BY_ID) ? { id: key.slice(BY_ID.length) } : { slug: key };
    const server = await this.registry.findRunnable(by);
    return server && toRunnable(server);
  }

  /** What is known of a server is read anew. */
  private forget(id: string): void {
    this.servers.dropWhere(({ serverId }) => serverId === id);
  }

  /** Its channels to all but the current release go; calls that run on them end as they began. */
  private drop(id: string, current: string | null): void {
    this.forget(id);
    this.links.dropWhere(({ target: { serverId, releaseId } }) => serverId === id && releaseId !== current);
  }
}

/** A release that can be called, with its server. */
interface UsableRelease {
  releaseId: string;
  runnable: Runnable;
  release: RunnableRelease;
}

/** @throws NotRunnableError */
function usable(runnable: Runnable): UsableRelease {
  const { release } = runnable;
  if ('reason' in release) throw new NotRunnableError(release.reason);
  return { releaseId: release.id, runnable, release };
}

/** The server's address itself and the `/mcp` below it, which many clients add. */
function isMcp(path: string[]): boolean {
  return path.length === 0 || (path.length === 1 && path[0] === 'mcp');
}

/** Values may be credentials, so nothing is kept under them. */
function hashOf({ headers, query }: RunValues): string {
  return createHash('sha256')
    .update(JSON.stringify([headers, query]))
    .digest('base64url');
}
