/**
 * Run endpoints of servers: `/run/{slug}` speaks MCP for every kind of release, and paths under it reach the HTTP interface of hosted code.
 *
 * Callers of an account that send the same configuration values share one upstream handle; accounts never share one, since a server might
 * keep data in its session. Release and values are read again after the body was received, so that a slow upload uses the latest release.
 * When another release becomes current, running calls finish on the previous one. Streams and calls close when the account can no longer
 * call the server.
 *
 * Every POST, and every request under the endpoint, is recorded as an invocation; arguments and results only if the owner enabled it.
 * Upstream failures and missing values are JSON-RPC errors; an unknown path is 404, a release that cannot run here reports the reason.
 */
import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { RESERVED_SEGMENT } from '../../config/published-clients.js';
import { originOf } from '../../mcp/server/mcp-request.js';
import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import type { Channel, McpCall, McpReply } from '../../mcp/protocol/channel.js';
import { grantedTools } from '../../mcp/client/tools/tool-choice.js';
import { McpRefusal, McpMethodNotAllowedError } from '../../mcp/server/mcp-server.errors.js';
import { McpHttpServer } from '../../mcp/server/mcp-http-server.js';
import { HandlePool } from '../../mcp/client/handle-pool.js';
import { CallList } from '../../platform/limits/call-list.js';
import { ServerNotFoundError } from '../servers/servers.errors.js';
import { OpenRequests } from '../../platform/http/open-requests.js';
import type { StreamOwner } from '../../platform/http/event-stream.js';
import { Metrics } from '../../platform/telemetry/metrics.js';
import type { Caller, GrantRef } from '../auth/access.types.js';
import { ToolsOnlyError } from '../auth/auth.errors.js';
import { isStillOpen } from '../auth/open-rights.service.js';
import type { ServerHolder, ServerUse } from '../servers/server.types.js';
import { ServersService } from '../servers/servers.service.js';
import { CallEvents } from '../logs/call.events.js';
import { CallMetricsService } from '../logs/call-metrics.service.js';
import { InvocationRecord, InvocationRecorder } from './invocation-record.js';
import { HostedHttpProxy, isReserved } from './hosted-http-proxy.js';
import { valuesOf, type RunValues } from './run-config-values.js';
import { ReleaseHandles, type ReleaseHandle } from './release-handles.js';
import { NotRunnableError } from './run.errors.js';
import { NotFoundError } from '../../platform/errors/domain-error.js';
import { ServerResolver, type ResolvedRelease, type ResolvedServer } from './server-resolver.js';

/** Maximum number of open upstream handles: one for each release, account, and set of configuration values. */
const HANDLES_MAX = 5_000;

/** The server and the caller of a request, and the path under the run endpoint. */
export interface RunCall {
  slug: string;
  caller: Caller;
  /** The decoded segments after the slug. */
  path: string[];
}

@Injectable()
export class RunService implements ServerHolder, OnModuleInit, OnApplicationShutdown {
  private readonly handles = new HandlePool<ReleaseHandle>('run', HANDLES_MAX);
  private readonly running = new CallList<ServerUse & { response: ServerResponse }>();

  constructor(
    private readonly serversService: ServersService,
    private readonly callMetricsService: CallMetricsService,
    private readonly serverResolver: ServerResolver,
    private readonly releaseHandles: ReleaseHandles,
    private readonly mcpHttpServer: McpHttpServer,
    private readonly openRequests: OpenRequests,
    private readonly hostedHttpProxy: HostedHttpProxy,
    private readonly invocationRecorder: InvocationRecorder,
    private readonly callEvents: CallEvents,
    metrics: Metrics,
  ) {
    metrics.gauge('slipway_run_links', 'Open handles to servers, of run endpoints.', () => this.handles.size);
  }

  onModuleInit(): void {
    // Running calls finish on the previous release.
    this.serverResolver.events.on('current', (id, current) =>
      this.handles.dropWhere(({ owner: { target } }) => target.serverId === id && target.releaseId !== current),
    );
    this.serverResolver.events.on('offers', (id) =>
      this.handles.forgetListsWhere(({ owner: { target } }) => target.serverId === id),
    );
  }

  /**
   * Serves one request to a run endpoint or a path under it. Only POSTs among MCP requests are recorded. Upstream failures and missing values
   * become JSON-RPC errors.
   *
   * @throws ServerNotFoundError, KeyScopeError, NotFoundError, NotRunnableError, errors of the MCP server, and for other paths
   * UpstreamFailure
   */
  async forward({ slug, caller, path }: RunCall, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { accountId, keyId } = caller;
    const lookup = this.serverResolver.forCaller(slug, caller);
    let server = lookup instanceof Promise ? await lookup : lookup;
    const endUse = this.running.add({ serverId: server.serverId, accountId, response });
    this.openRequests.checkWhileOpen(request, async () => {
      const now = await this.serverResolver.forCaller(slug, caller);
      const tool = this.openRequests.find(request)?.tool;
      if (!isStillOpen(asGuest(server.grant), asGuest(now.grant), isPost ? tool : undefined)) {
        throw new ServerNotFoundError();
      }
    });
    const isPost = request.method === 'POST';
    // `/mcp` under the run endpoint is the endpoint itself: many clients append it.
    const isPassedThrough = path.length > 1 || (path.length === 1 && path[0] !== 'mcp');
    const record =
      isPost || isPassedThrough
        ? new InvocationRecord(originOf(caller), { keepsPayload: server.logPayloads, isPassedThrough })
        : undefined;
    const open = async () => {
      // Again after the body was received, so that a slow upload uses the latest release.
      const again = this.serverResolver.forCaller(slug, caller);
      server = again instanceof Promise ? await again : again;
      let channel: Channel | McpRefusal;
      try {
        const { release, namespaceId } = server;
        if ('reason' in release) throw new NotRunnableError(release.reason);
        const { config } = release;
        const values = config.length === 0 ? null : await valuesOf(config, request, namespaceId);
        channel = this.channelTo(server, release, accountId, values);
      } catch (error) {
        if (!(error instanceof McpRefusal)) throw error;
        channel = error;
      }
      if (isPost && !(channel instanceof McpRefusal)) this.serversService.countUse(server.serverId);
      const { grant, serverId: target } = server;
      if (!(channel instanceof McpRefusal)) channel = grantedTools(channel, grant?.tools);
      const { scopes, loginsEpoch } = caller;
      return { channel, account: accountId, principal: keyId, target, grant, scopes, loginsEpoch };
    };
    try {
      if (record && isPassedThrough) return await this.passOn(server, { accountId, keyId }, request, response, record);
      await this.mcpHttpServer.serve(request, response, open, record);
    } catch (error) {
      record?.threw(error);
      throw error;
    } finally {
      endUse();
      if (record) {
        const url = [this.releaseHandles.addressOf(server), ...path.map(encodeURIComponent)].join('/');
        this.endRecord(record, server, url, request.method, response.statusCode);
      }
    }
  }

  /**
   * Sends one request to a server without HTTP, recorded like a POST to its run endpoint. The caller has no configuration values.
   *
   * @throws as {@link forward}, and InputRequiredError
   */
  async request(slug: string, caller: Caller, call: McpCall): Promise<McpReply> {
    const server = await this.serverResolver.forCaller(slug, caller);
    const { release, namespaceId, grant, logPayloads: keepsPayload } = server;
    const record = new InvocationRecord(call.origin ?? null, { keepsPayload });
    const received = call.params;
    record.received(call.method, received && JSON.parse(received));
    try {
      if ('reason' in release) throw new NotRunnableError(release.reason);
      const values = release.config.length === 0 ? null : await valuesOf(release.config, { headers: {} }, namespaceId);
      this.serversService.countUse(server.serverId);
      const channel = grantedTools(this.channelTo(server, release, caller.accountId, values), grant?.tools);
      const reply = await channel.request(Object.assign(call, { invocationId: record.invocationId }));
      record.recordReply(reply);
      return reply;
    } catch (error) {
      record.threw(error);
      throw error;
    } finally {
      // A hook replaced the arguments.
      if (call.params !== received) record.received(call.method, JSON.parse(call.params as string));
      this.endRecord(record, server, this.releaseHandles.addressOf(server));
    }
  }

  private endRecord(
    record: InvocationRecord,
    server: ResolvedServer,
    url: string,
    method = 'POST',
    status = 200,
  ): void {
    const ids = { serverId: server.serverId, releaseId: server.release.id };
    const { outcome, wallMs } = this.invocationRecorder.finishRecord(record, ids, url, { method, status }, true);
    this.callMetricsService.observeCall('run', outcome, wallMs);
    if (record.origin && outcome !== 'denied')
      this.callEvents.emit('ended', { kind: 'server', id: ids.serverId }, record.origin);
  }

  /**
   * Returns the channel to a server's current release for an account and these configuration values. Accounts never share one: a server might keep
   * data in its session.
   */
  private channelTo(
    server: ResolvedServer,
    release: ResolvedRelease,
    accountId: string,
    values: RunValues | null,
  ): Channel {
    let key = `${release.id} ${accountId}`;
    if (values) {
      // A hash, since the values might be credentials.
      const hash = createHash('sha256').update(JSON.stringify([values.headers, values.query]));
      key += ` ${hash.digest('base64url')}`;
    }
    const existing = this.handles.get(key);
    if (existing) return existing;
    const handle = this.releaseHandles.handleTo(server, release, values, {
      accountId,
      isDirect: true,
      sessionsOf: `account ${accountId}`,
    });
    this.handles.put(key, handle, accountId);
    return handle;
  }

  endUse({ serverId, accountId }: ServerUse, now: boolean): void {
    this.handles.dropWhere(
      // eslint-disable-next-line no-restricted-syntax -- Closes the handles of one account.
      ({ owner: { target } }) => target.serverId === serverId && target.accountId === accountId,
      true,
    );
    // eslint-disable-next-line no-restricted-syntax -- Selects the requests of one account.
    const isOfUse = (use: ServerUse) => use.serverId === serverId && use.accountId === accountId;
    for (const { response } of this.running.filter(isOfUse)) {
      // A call without a response might have had effects, so it can finish unless `now` is set.
      if (now || response.headersSent) response.destroy();
    }
  }

  *uses(): Iterable<ServerUse> {
    yield* this.running.filter(() => true);
    for (const { owner } of this.handles.values()) yield owner.target;
  }

  onApplicationShutdown(): Promise<void> {
    return this.handles.close();
  }

  /**
   * Forwards a request under the run endpoint to the hosted code.
   *
   * @throws NotFoundError, McpMethodNotAllowedError, NotRunnableError
   */
  private async passOn(
    server: ResolvedServer,
    caller: StreamOwner,
    request: IncomingMessage,
    response: ServerResponse,
    record: InvocationRecord,
  ): Promise<void> {
    const { serverId, name, slug, release, grant } = server;
    if (grant?.tools) throw new ToolsOnlyError(grant.tools);
    if ('reason' in release) throw new NotRunnableError(release.reason);
    const endpoint = this.releaseHandles.addressOf(server);
    if (!release.program) {
      if (request.method === 'POST') {
        throw new NotFoundError(
          `${name} speaks MCP at ${endpoint} and has no other paths: its release runs elsewhere.`,
        );
      }
      throw new McpMethodNotAllowedError();
    }
    if (isReserved(request.url ?? '')) {
      throw new NotFoundError(
        `No path under ${endpoint} may contain the segment "${RESERVED_SEGMENT}": ${name} responds at other paths.`,
      );
    }
    this.serversService.countUse(serverId);
    await this.hostedHttpProxy.forward(release.program, { slug, grant, ...caller }, request, response, record);
  }
}

/** Returns a grant for the run endpoint of a server, whose callers differ only in their tools. */
function asGuest(grant: GrantRef | undefined): GrantRef {
  return { id: null, level: 'call', tools: grant?.tools ?? null };
}
