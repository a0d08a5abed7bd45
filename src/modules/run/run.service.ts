import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import type { Channel } from '../../mcp/protocol/channel.js';
import { McpRefusal, McpMethodNotAllowedError } from '../../mcp/server/mcp-server.errors.js';
import { McpHttpServer } from '../../mcp/server/mcp-http-server.js';
import { HandlePool } from '../../mcp/client/handle-pool.js';
import { ServerUrlsService } from '../servers/server-urls.service.js';
import { ServersService } from '../servers/servers.service.js';
import { CallMetricsService } from '../logs/call-metrics.service.js';
import { InvocationsService } from '../logs/ingest/invocations.service.js';
import { ToolOutputsService } from '../tool-schemas/tool-outputs.service.js';
import { InvocationRecord } from './invocation-record.js';
import { HostedHttpProxy } from './hosted-http-proxy.js';
import { isReserved } from './reserved-paths.js';
import { valuesOf, type RunValues } from './run-config-values.js';
import type { ReleaseHandle } from './release-handle.js';
import { ReleaseHandles } from './release-handles.js';
import { NotRunnableError, RunPathNotFoundError, RunPathReservedError } from './run.errors.js';
import type { ResolvedServer } from './resolved-server.js';
import { ServerResolver } from './server-resolver.js';

/** Open upstream sessions at most: one for each release, account, and set of values its callers send. */
const LINKS_MAX = 5_000;

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
  private readonly held = new HandlePool<ReleaseHandle>('run', LINKS_MAX);

  constructor(
    private readonly registry: ServersService,
    private readonly addresses: ServerUrlsService,
    private readonly invocations: InvocationsService,
    private readonly figures: CallMetricsService,
    private readonly runnables: ServerResolver,
    private readonly links: ReleaseHandles,
    private readonly front: McpHttpServer,
    private readonly raw: HostedHttpProxy,
    private readonly outputs: ToolOutputsService,
  ) {}

  onModuleInit(): void {
    // Calls that run on another release's channels end as they began.
    this.runnables.whenCurrent((id, current) =>
      this.held.dropWhere(({ target: { serverId, releaseId } }) => serverId === id && releaseId !== current),
    );
    this.runnables.whenOffersChange((id) => this.held.forgetListsWhere(({ target: { serverId } }) => serverId === id));
  }

  /** Open upstream sessions. */
  get size(): number {
    return this.held.size;
  }

  /** The server behind a slug. No query while it was read in the last 5 s. @throws ServerNotFoundError */
  find(slug: string): Promise<ResolvedServer> {
    return this.runnables.bySlug(slug);
  }

  /**
   * Answers one request to a server's address or below it; of MCP only POSTs are recorded. Failures of the server, and
   * values that lack, become JSON-RPC answers to MCP.
   *
   * @param find which server; asked again when the body is there, so that a slow upload meets the release of its end
   * @throws RunPathNotFoundError, RunPathReservedError, NotRunnableError, what `find` and the front throw, and for other paths UpstreamFailure
   */
  async forward(
    find: () => Promise<ResolvedServer>,
    { keyId, accountId, path }: RunCaller,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    let runnable = await find();
    const isPost = request.method === 'POST';
    const isRaw = !isMcp(path);
    const record = isPost || isRaw ? new InvocationRecord({ keepsPayload: runnable.logPayloads, isRaw }) : undefined;
    const open = async () => {
      runnable = await find();
      const channel = this.channelOrRefusal(runnable, accountId, request);
      if (isPost && !(channel instanceof McpRefusal)) this.registry.countUse(runnable.serverId);
      return { channel, account: accountId, principal: keyId, target: runnable.serverId };
    };
    try {
      if (record && isRaw) return await this.below(runnable, accountId, request, response, record);
      await this.front.serve(request, response, open, record);
    } catch (error) {
      record?.threw(error);
      throw error;
    } finally {
      if (record) {
        const { serverId, release } = runnable;
        const { output } = record;
        if (output) this.outputs.observe(serverId, output.tool, output.result);
        const url = [this.addresses.run(runnable.slug), ...path.map(encodeURIComponent)].join('/');
        const invocation = record.finish({ serverId, releaseId: release.id }, url, {
          method: request.method ?? 'POST',
          status: response.statusCode,
        });
        this.figures.ended('run', invocation.outcome, invocation.wallMs);
        this.invocations.record(invocation);
      }
    }
  }

  /**
   * The live channel to a server's current release, for one account's callers who send what this request carries. Never
   * for two accounts: a server may remember things in its session.
   *
   * @throws NotRunnableError, InputRequiredError, InputInvalidError
   */
  channelTo(runnable: ResolvedServer, accountId: string, request: Pick<IncomingMessage, 'headers' | 'url'>): Channel {
    const { release } = runnable;
    if ('reason' in release) throw new NotRunnableError(release.reason);
    const { id, config } = release;
    const values = config.fields.length === 0 ? null : valuesOf(config, request);
    const key = [id, accountId, ...(values ? [hashOf(values)] : [])].join(' ');
    const held = this.held.get(key);
    if (held) return held;
    const link = this.links.to(runnable, release, values, { sessionsOf: `account ${accountId}` });
    this.held.put(key, link, accountId);
    return link;
  }

  onApplicationShutdown(): Promise<void> {
    return this.held.close();
  }

  /**
   * What is below the address belongs to the code that runs here.
   *
   * @throws RunPathNotFoundError, RunPathReservedError, McpMethodNotAllowedError, NotRunnableError
   */
  private async below(
    { serverId, name, slug, release }: ResolvedServer,
    accountId: string,
    request: IncomingMessage,
    response: ServerResponse,
    record: InvocationRecord,
  ): Promise<void> {
    if ('reason' in release) throw new NotRunnableError(release.reason);
    if (!release.program) {
      if (request.method === 'POST') throw new RunPathNotFoundError(name, this.addresses.run(slug));
      response.setHeader('allow', 'POST');
      throw new McpMethodNotAllowedError();
    }
    if (isReserved(request.url ?? '')) throw new RunPathReservedError(name, this.addresses.run(slug));
    this.registry.countUse(serverId);
    await this.raw.forward(release.program, { slug, accountId }, request, response, record);
  }

  private channelOrRefusal(
    runnable: ResolvedServer,
    accountId: string,
    request: IncomingMessage,
  ): Channel | McpRefusal {
    try {
      return this.channelTo(runnable, accountId, request);
    } catch (error) {
      if (error instanceof McpRefusal) return error;
      throw error;
    }
  }
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
