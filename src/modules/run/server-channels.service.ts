import { Injectable } from '@nestjs/common';
import type {
  Channel,
  McpCall,
  McpReply,
  Listening,
  ListenFilter,
  UpstreamListener,
} from '../../mcp/protocol/channel.js';
import { memberText } from '../../mcp/protocol/json-edit.js';
import { ServerUrlsService } from '../servers/server-urls.service.js';
import { ServersService } from '../servers/servers.service.js';
import { InvocationsService } from '../logs/ingest/invocations.service.js';
import { ToolOutputsService } from '../tool-schemas/tool-outputs.service.js';
import type { AuthAdapter } from '../../mcp/oauth/auth-adapter.types.js';
import { HostedChannelsService } from '../../hosting/mcp/hosted-channels.service.js';
import { InvocationRecord, type Answered } from './invocation-record.js';
import type { GivenValues, RunFormField } from '../releases/releases.types.js';
import { toRunForm, valuesFor, type RunValues } from './run-config-values.js';
import { ReleaseHandles } from './release-handles.js';
import { AdapterAuthRequiredError, NotRunnableError, ServerGoneError } from './run.errors.js';
import type { ResolvedServer, ResolvedRelease } from './resolved-server.js';
import { ServerResolver } from './server-resolver.js';
import type { UpstreamHandle } from '../../mcp/client/upstream-handle.js';
import type { UpstreamIdentity } from '../../mcp/protocol/protocol.js';

/** A call through a connection is recorded like one at the run address. */
const BY_CONNECTION: Answered = { method: 'POST', status: 200 };

/** What a {@link ServerChannel} needs of those who know releases. */
interface ServerChannelSource<R extends { releaseId: string }> {
  /** The release to use now; rejects when there is none. */
  current(): Promise<R>;
  /** The live end of a release. */
  connect(release: R): UpstreamHandle;
  /** Stands around every call, for its record, whose id `work` is given. */
  watch(call: McpCall, work: (invocationId: string) => Promise<McpReply>): Promise<McpReply>;
}

/**
 * A channel to whatever release of a server is current: when another one becomes current, the next use leads there, and
 * calls that run on the old one end as they began.
 */
class ServerChannel<R extends { releaseId: string }> implements Channel {
  private held: { releaseId: string; link: UpstreamHandle } | null = null;
  private isClosed = false;

  constructor(private readonly source: ServerChannelSource<R>) {}

  async open(timeoutMs: number): Promise<UpstreamIdentity> {
    return (await this.link()).open(timeoutMs);
  }

  request(call: McpCall): Promise<McpReply> {
    return this.source.watch(call, async (invocationId) => {
      const link = await this.link();
      return link.request({ ...call, invocationId });
    });
  }

  async listen(filter: ListenFilter, listener: UpstreamListener, timeoutMs: number): Promise<Listening> {
    return (await this.link()).listen(filter, listener, timeoutMs);
  }

  forgetLists(): void {
    this.held?.link.forgetLists();
  }

  async release(profileKey: string, forGood = false): Promise<void> {
    await (await this.heldOr(forGood))?.release(profileKey, forGood);
  }

  async close(forGood = false): Promise<void> {
    this.isClosed = true;
    await (await this.heldOr(forGood))?.close(forGood);
  }

  /** The link, if there is one; one is made where sessions may be kept that this process knows nothing of. */
  private async heldOr(isMade: boolean): Promise<UpstreamHandle | undefined> {
    if (this.held || !isMade) return this.held?.link;
    // What cannot be called has nothing to end.
    return this.link().catch(() => undefined);
  }

  private async link(): Promise<UpstreamHandle> {
    const release = await this.source.current();
    if (this.held?.releaseId === release.releaseId) return this.held.link;
    void this.held?.link.retire();
    const link = this.source.connect(release);
    this.held = { releaseId: release.releaseId, link };
    if (this.isClosed) await link.close();
    return link;
  }
}

/** A connection to a server, which keeps its own values and its own upstream session. */
export interface ServerUser extends GivenValues {
  /** The connection's own id, whose sessions these are. */
  id: string;
  /** What the server is called, also when it is gone. */
  serverName: string;
  /** The token for the release's upstream, if the connection holds one: `HttpTarget.bearer`, told which upstream. */
  bearer?: (upstreamUrl: string, rejected?: string) => Promise<string | null>;
}

/** The current releases of servers, for those who are bound to a server and keep their own values and sessions. */
@Injectable()
export class ServerChannelsService {
  constructor(
    private readonly registry: ServersService,
    private readonly addresses: ServerUrlsService,
    private readonly invocations: InvocationsService,
    private readonly outputs: ToolOutputsService,
    private readonly runnables: ServerResolver,
    private readonly links: ReleaseHandles,
    private readonly hosted: HostedChannelsService,
  ) {}

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
        const bearer = tokenFor(runnable.name, release, values, user);
        return this.links.to(runnable, release, values, { sessionsOf: `connection ${user.id}`, bearer });
      },
      watch: (call, work) => this.watched(serverId, call, work),
    });
  }

  /** Calls `listener` when the lists of a server may be others than before. */
  whenOffersChange(listener: (serverId: string) => void): void {
    this.runnables.whenOffersChange(listener);
  }

  /**
   * What a person may fill in for a server, and what they authorize: where its current release is, or what its code keeps
   * tokens for (`adapter` names the server then); null for code that authorizes nobody.
   *
   * @throws ServerGoneError, NotRunnableError
   */
  async formOf(
    serverId: string,
    { serverName, ...given }: Omit<ServerUser, 'id' | 'bearer'>,
  ): Promise<{ upstream: string | null; adapter?: string; fields: RunFormField[] }> {
    const { release, runnable } = await this.usable(serverId, serverName);
    const { program, authAddress } = release;
    const upstream = program ? authAddress : release.upstream;
    return {
      upstream: upstream?.href ?? null,
      ...(authAddress && { adapter: runnable.name }),
      fields: toRunForm(release.config, given),
    };
  }

  /**
   * The code by which a server authorizes its users itself, for one with these values; null when it has none.
   *
   * @throws ServerGoneError, NotRunnableError, InputRequiredError, InputInvalidError
   */
  async adapterFor(serverId: string, user: Omit<ServerUser, 'id' | 'bearer'>): Promise<AuthAdapter | null> {
    const { release, runnable } = await this.usable(serverId, user.serverName);
    if (!release.program || !release.authAddress) return null;
    const { query } = valuesFor(release.config, user);
    return this.hosted.adapterOf(release.program, { name: runnable.name, query });
  }

  /**
   * Where a server's current release runs, for those who look at the way there: null for here. Its owner's to know: tell
   * nobody else.
   *
   * @throws ServerGoneError, NotRunnableError
   */
  async upstreamOf(serverId: string, serverName: string): Promise<URL | null> {
    const { program, upstream } = (await this.usable(serverId, serverName)).release;
    return program ? null : upstream;
  }

  /**
   * Counts a call through a connection and records it, under the id of the client's request if it has one. A call refused
   * before the server was reached is recorded for the connection only.
   */
  private async watched(serverId: string, call: McpCall, work: (id: string) => Promise<McpReply>) {
    this.registry.countUse(serverId);
    const server = await this.runnables.byId(serverId).catch(() => null);
    const keepsPayload = server?.logPayloads;
    const record = new InvocationRecord({ keepsPayload, invocationId: call.invocationId });
    record.asked(call.method, keepsPayload ? read(call.params) : nameIn(call));
    try {
      const reply = await work(record.invocationId);
      record.answered(reply);
      return reply;
    } catch (error) {
      record.threw(error);
      throw error;
    } finally {
      // The caller gets the answer also while the database is unavailable.
      const known = await this.runnables.byId(serverId).catch(() => null);
      const url = known ? this.addresses.run(known.slug) : '';
      const { output } = record;
      if (output) this.outputs.observe(serverId, output.tool, output.result);
      if (known) {
        const invocation = record.finish({ serverId, releaseId: known.release.id }, url, BY_CONNECTION);
        if (invocation.outcome !== 'denied') this.invocations.record(invocation);
      }
    }
  }

  /** @throws ServerGoneError, NotRunnableError */
  private async usable(serverId: string, serverName: string): Promise<UsableRelease> {
    const runnable = await this.runnables.byId(serverId);
    if (!runnable) throw new ServerGoneError(serverName);
    return usable(runnable);
  }
}

/**
 * The token for a server that runs elsewhere, or for code that authorizes its users itself, which is never called without.
 * A value that goes on as the authorization header is meant to.
 */
function tokenFor(
  name: string,
  { program, upstream, authAddress }: ResolvedRelease,
  { headers }: RunValues,
  { bearer }: ServerUser,
) {
  const hasOwn = Object.keys(headers).some((name) => name.toLowerCase() === 'authorization');
  if (hasOwn || !bearer || (program && !authAddress)) return undefined;
  return async (rejected?: string) => {
    const token = await bearer((authAddress ?? upstream).href, rejected);
    if (token === null && authAddress) throw new AdapterAuthRequiredError(name);
    return token;
  };
}

/** A release that can be called, with its server. */
interface UsableRelease {
  releaseId: string;
  runnable: ResolvedServer;
  release: ResolvedRelease;
}

function read(params: string | undefined): unknown {
  return params === undefined ? undefined : JSON.parse(params);
}

/** All that is kept of a call without its arguments: which tool it called. They may be long, so they are not read. */
function nameIn({ method, params }: McpCall): { name: unknown } | undefined {
  return method === 'tools/call' && params !== undefined ? { name: read(memberText(params, 'name')) } : undefined;
}

/** @throws NotRunnableError */
function usable(runnable: ResolvedServer): UsableRelease {
  const { release } = runnable;
  if ('reason' in release) throw new NotRunnableError(release.reason);
  return { releaseId: release.id, runnable, release };
}
