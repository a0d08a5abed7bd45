import { Injectable } from '@nestjs/common';
import { Env } from '../../config/env.js';
import type { Channel, McpCall } from '../../mcp/protocol/channel.js';
import { HttpChannels } from '../../mcp/client/http/http-channel.js';
import { ServerUrlsService } from '../servers/server-urls.service.js';
import { HostedChannelsService, type HostedCall } from '../../hosting/mcp/hosted-channels.service.js';
import { inputNames, type RunValues } from './run-config-values.js';
import type { ResolvedServer, ResolvedRelease } from './server-resolver.js';
import { CallHooks, type HookedTarget } from '../../mcp/client/tools/call-hooks.js';
import { type HandleOwner, UpstreamHandle } from '../../mcp/client/upstream-handle.js';
import { UpstreamAuthRequiredError } from '../../mcp/protocol/mcp-errors.js';
import { AdapterAuthRequiredError, ServerAuthRequiredError } from './run.errors.js';

interface ReleaseHandleTarget {
  serverId: string;
  releaseId: string;
  accountId: string;
  serverName: string;
  /** Names of the configuration values, such as `header "x-token"`; empty without any. */
  inputs: string;
  /** Set if the code has an auth adapter and these callers sent no token: they can list, but not call. Null for all others. */
  closedAt: string | null;
}

/** Methods whose result does not depend on the caller. */
const CALLER_INDEPENDENT = new Set([
  'ping',
  'server/discover',
  'logging/setLevel',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
]);

/** Handle of a release, which callers that send the same values share. */
export type ReleaseHandle = UpstreamHandle<ReleaseOwner>;

class ReleaseOwner implements HandleOwner {
  /** @param callHooks absent for calls of a connection, which has already run them */
  constructor(
    readonly target: ReleaseHandleTarget,
    readonly callHooks?: CallHooks,
  ) {}

  hookedTarget(): HookedTarget {
    const { serverId, serverName } = this.target;
    return { kind: 'server', id: serverId, name: serverName };
  }

  refusal({ method }: McpCall): Error | null {
    const { closedAt, serverName } = this.target;
    if (closedAt === null || CALLER_INDEPENDENT.has(method)) return null;
    return new UpstreamAuthRequiredError(
      `The server ${serverName} authorizes its users itself, and nobody is authorized at its run endpoint. Create a connection ` +
        `and authorize there: PUT /connect/{namespace}/{connectionId} with {"mcpUrl": "${closedAt}"} returns a link for that.`,
    );
  }

  failed(_method: string, error: Error): Error {
    const { serverName, inputs } = this.target;
    if (error instanceof AdapterAuthRequiredError) return error;
    if (error instanceof UpstreamAuthRequiredError) {
      return new ServerAuthRequiredError(serverName, inputs, error.challenges);
    }
    return error;
  }
}

interface ReleaseCaller extends Pick<HostedCall, 'sessionsOf' | 'bearer'> {
  accountId: string;
  /** True for calls at the run endpoint, which do not pass a connection. */
  isDirect?: boolean;
}

@Injectable()
export class ReleaseHandles {
  constructor(
    private readonly httpChannels: HttpChannels,
    private readonly hostedChannelsService: HostedChannelsService,
    private readonly serverUrlsService: ServerUrlsService,
    private readonly callHooks: CallHooks,
    private readonly env: Env,
  ) {}

  addressOf({ slug }: Pick<ResolvedServer, 'slug'>): string {
    return this.serverUrlsService.run(slug);
  }

  /**
   * Returns the handle for callers that send these values and this token. `sessionsOf` names the owner of their sessions in
   * hosted code. Header names are in lower case.
   */
  handleTo(
    { serverId, name, slug }: ResolvedServer,
    release: ResolvedRelease,
    values: RunValues | null,
    { accountId, isDirect, ...caller }: ReleaseCaller,
  ): ReleaseHandle {
    const { id, config, authAddress } = release;
    const isClosed = authAddress !== null && !caller.bearer && values?.headers.authorization === undefined;
    const channel = this.channelTo(`"${name}"`, release, { headers: {}, query: [], ...values, ...caller });
    const closedAt = isClosed ? this.serverUrlsService.run(slug) : null;
    const target = { serverId, releaseId: id, accountId, serverName: name, inputs: inputNames(config), closedAt };
    return new UpstreamHandle(channel, new ReleaseOwner(target, isDirect ? this.callHooks : undefined));
  }

  private channelTo(
    name: string,
    { upstream, program }: ResolvedRelease,
    { headers, query, bearer, sessionsOf }: RunValues & Pick<HostedCall, 'sessionsOf' | 'bearer'>,
  ): Channel {
    if (program) {
      const call = { mcpPath: upstream.pathname, name, headers, query, bearer, sessionsOf };
      return this.hostedChannelsService.channelTo(program, call);
    }
    const url = new URL(upstream);
    for (const [key, value] of query) url.searchParams.append(key, value);
    const connectTimeoutMs = this.env.upstreamConnectTimeoutMs;
    return this.httpChannels.channelTo({ url, name, headers, bearer, connectTimeoutMs });
  }
}
