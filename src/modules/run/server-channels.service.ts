/**
 * Channels of connections to registry servers. The next call after a publish uses the new release, running calls finish
 * on the old one.
 *
 * A connection has its own configuration values, token and upstream sessions; its account must have the right to call
 * the server at each call. Calls are recorded in the log of the server like those at the run endpoint, under the id of
 * the connection's own record. A call that was rejected before it reached the server appears only in the log of the
 * connection.
 */
import { Injectable } from '@nestjs/common';
import type { Channel, McpCall, McpReply, Listening } from '../../mcp/protocol/channel.js';
import { grantedTools } from '../../mcp/client/tools/tool-choice.js';
import { memberText } from '../../mcp/protocol/json-edit.js';
import { callerFor, type Caller } from '../auth/access.types.js';
import { ServersService } from '../servers/servers.service.js';
import type { AuthAdapter } from '../../mcp/oauth/tokens.js';
import { HostedChannelsService } from '../../hosting/mcp/hosted-channels.service.js';
import { InvocationRecord, InvocationRecorder } from './invocation-record.js';
import type { RunFormField, StoredValues } from '../releases/releases.types.js';
import { toRunForm, valuesFor, type RunValues } from './run-config-values.js';
import { ReleaseHandles, type ReleaseHandle } from './release-handles.js';
import { AdapterAuthRequiredError, NotRunnableError, ServerGoneError } from './run.errors.js';
import { ServerResolver, type ResolvedServer, type ResolvedRelease } from './server-resolver.js';
import type { UpstreamHandle } from '../../mcp/client/upstream-handle.js';
import type { Era, UpstreamIdentity } from '../../mcp/protocol/protocol.js';

/** Record of a call through a connection, like that of a call at the run address. */
const BY_CONNECTION = { method: 'POST', status: 200 };

type Presentation = Awaited<ReturnType<ServersService['presentation']>>;

type CallableServer = ResolvedServer & { release: ResolvedRelease };

/** Returns a handle; a promise only if the handle must be opened. */
type OpenHandle = () => UpstreamHandle | Promise<UpstreamHandle>;

class ServerChannel implements Channel {
  private current: ReleaseHandle | null = null;
  private isClosed = false;

  /**
   * @param peek the server and its current release, if both are cached
   * @param find the same, read if needed; rejects if there is none
   * @param valuesFor rejects if the configuration values are incomplete
   * @param send sends a call and records it
   */
  constructor(
    private readonly peek: () => ResolvedServer | null,
    private readonly find: () => Promise<CallableServer>,
    private readonly valuesFor: (server: CallableServer) => Promise<RunValues>,
    private readonly connect: (server: CallableServer, values: RunValues) => ReleaseHandle,
    private readonly send: (call: McpCall, open: OpenHandle) => Promise<McpReply>,
  ) {}

  async open(timeoutMs: number, era?: Era): Promise<UpstreamIdentity> {
    return (await this.narrowChannel()).open(timeoutMs, era);
  }

  request(call: McpCall): Promise<McpReply> {
    return this.send(call, () => {
      const { current } = this;
      return current !== null && current.owner.target.releaseId === this.peek()?.release.id ? current : this.handle();
    });
  }

  async listen(...args: Parameters<Channel['listen']>): Promise<Listening> {
    return (await this.narrowChannel()).listen(...args);
  }

  forgetLists(): void {
    this.current?.forgetLists();
  }

  notify(profileKey: string, text: string): void {
    this.current?.notify(profileKey, text);
  }

  async release(profileKey: string, forGood = false): Promise<void> {
    await (await this.handleOr(forGood))?.release(profileKey, forGood);
  }

  async close(forGood = false): Promise<void> {
    this.isClosed = true;
    await (await this.handleOr(forGood))?.close(forGood);
  }

  /** @param isMade opens a handle if there is none: another process might have stored sessions */
  private async handleOr(isMade: boolean): Promise<UpstreamHandle | null> {
    // A release that cannot be called has no sessions to close.
    return this.current ?? (isMade ? this.handle().catch(() => null) : null);
  }

  /** Restricts the channel to the tools that were granted to the account of the connection. */
  private async narrowChannel(): Promise<Channel> {
    const { grant } = await this.find();
    return grantedTools(await this.handle(), grant?.tools);
  }

  private async handle(): Promise<UpstreamHandle> {
    const server = await this.find();
    if (this.current?.owner.target.releaseId === server.release.id) return this.current;
    const values = await this.valuesFor(server);
    if (this.current?.owner.target.releaseId === server.release.id) return this.current;
    void this.current?.retire();
    const handle = this.connect(server, values);
    this.current = handle;
    if (this.isClosed) await handle.close();
    return handle;
  }
}

export interface ServerConnection extends StoredValues {
  /** The connection's id, which owns the sessions. */
  id: string;
  /** Account of the connection, which must have the right to call the server. */
  accountId: string;
  /** Name of the server, for error messages after its deletion. */
  serverName: string;
  /** `HttpTarget.bearer` for an upstream: the access token of the connection, null without one. */
  bearer?: (upstreamUrl: string, rejected?: string) => string | null | Promise<string | null>;
}

@Injectable()
export class ServerChannelsService {
  constructor(
    private readonly serversService: ServersService,
    private readonly invocationRecorder: InvocationRecorder,
    private readonly serverResolver: ServerResolver,
    private readonly releaseHandles: ReleaseHandles,
    private readonly hostedChannelsService: HostedChannelsService,
  ) {}

  /**
   * Returns a channel that follows the current release. Its calls reject with ServerGoneError, NotRunnableError, InputRequiredError,
   * InputInvalidError.
   */
  channelFor(serverId: string, connection: ServerConnection): Channel {
    const caller = callerFor(connection.accountId);
    return new ServerChannel(
      () => this.serverResolver.peekFor(serverId, caller),
      () => this.requireRunnable(serverId, connection, caller),
      (server) => valuesFor(server.release.config, connection, server.namespaceId),
      (server, values) => {
        const bearer = tokenFor(server, values, connection);
        return this.releaseHandles.handleTo(server, server.release, values, {
          accountId: connection.accountId,
          sessionsOf: `connection ${connection.id}`,
          bearer,
        });
      },
      (call, open) => this.send(serverId, caller, call, open),
    );
  }

  /** Calls `listener` when lists might have changed. */
  onOffersChanged(listener: (serverId: string) => void): void {
    this.serverResolver.events.on('offers', listener);
  }

  /** @throws ServerGoneError, NotRunnableError */
  async formOf(
    serverId: string,
    { serverName, accountId, ...stored }: Omit<ServerConnection, 'id' | 'bearer'>,
  ): Promise<{ upstream: string | null; adapter?: string; fields: RunFormField[]; presentation: Presentation }> {
    const { release, name, namespaceId } = await this.requireRunnable(serverId, { serverName, accountId });
    const { program, authAddress } = release;
    const upstream = program ? authAddress : release.upstream;
    return {
      upstream: upstream?.href ?? null,
      ...(authAddress && { adapter: name }),
      fields: await toRunForm(release.config, stored, namespaceId),
      presentation: await this.serversService.presentation(serverId),
    };
  }

  /**
   * Returns the adapter with these configuration values; null without one.
   *
   * @throws ServerGoneError, NotRunnableError, InputRequiredError, InputInvalidError
   */
  async adapterFor(serverId: string, connection: Omit<ServerConnection, 'id' | 'bearer'>): Promise<AuthAdapter | null> {
    const { release, name, namespaceId } = await this.requireRunnable(serverId, connection);
    if (!release.program || !release.authAddress) return null;
    const { query } = await valuesFor(release.config, connection, namespaceId);
    return this.hostedChannelsService.adapterOf(release.program, { name, query });
  }

  /**
   * Returns null for hosted code. Only the owner of the server can see the URL.
   *
   * @throws ServerGoneError, NotRunnableError
   */
  async upstreamOf(
    serverId: string,
    connection: Pick<ServerConnection, 'accountId' | 'serverName'>,
  ): Promise<URL | null> {
    const { program, upstream } = (await this.requireRunnable(serverId, connection)).release;
    return program ? null : upstream;
  }

  /**
   * Sends a call with the id of the client's request, if there is one. A call that was rejected before it reached the server is
   * recorded for the connection only.
   */
  private async send(serverId: string, caller: Caller, call: McpCall, open: OpenHandle): Promise<McpReply> {
    // The caller gets the response even while the database is unavailable.
    const server =
      this.serverResolver.peekFor(serverId, caller) ??
      (await this.serverResolver.byId(serverId, caller).catch(() => null));
    if (server) this.serversService.countUse(serverId);
    const keepsPayload = server?.logPayloads;
    const record = new InvocationRecord(call.origin ?? null, { keepsPayload, invocationId: call.invocationId });
    let params: unknown;
    if (keepsPayload) params = read(call.params);
    // Arguments can be long, so only the name is parsed.
    else if (call.method === 'tools/call' && call.params !== undefined) {
      params = { name: read(memberText(call.params, 'name')) };
    }
    record.received(call.method, params);
    try {
      const opened = open();
      const handle = opened instanceof Promise ? await opened : opened;
      const recorded = { ...call };
      recorded.invocationId = record.invocationId;
      const reply = await grantedTools(handle, server?.grant?.tools).request(recorded);
      record.recordReply(reply);
      return reply;
    } catch (error) {
      record.threw(error);
      throw error;
    } finally {
      if (server) {
        const ids = { serverId, releaseId: server.release.id };
        this.invocationRecorder.finishRecord(record, ids, this.releaseHandles.addressOf(server), BY_CONNECTION, false);
      }
    }
  }

  /** @throws ServerGoneError, AccessRequiredError, NotRunnableError */
  private async requireRunnable(
    serverId: string,
    { accountId, serverName }: Pick<ServerConnection, 'accountId' | 'serverName'>,
    caller = callerFor(accountId),
  ): Promise<CallableServer> {
    const server = await this.serverResolver.byId(serverId, caller);
    if (!server) throw new ServerGoneError(serverName);
    if ('reason' in server.release) throw new NotRunnableError(server.release.reason);
    return server as CallableServer;
  }
}

/**
 * Returns the token of a call. Hosted code with an auth adapter is never called without one. A configured `authorization` header takes
 * precedence.
 */
function tokenFor(
  { name, release: { program, upstream, authAddress } }: CallableServer,
  { headers }: RunValues,
  { bearer }: ServerConnection,
) {
  const hasOwn = Object.keys(headers).some((name) => name.toLowerCase() === 'authorization');
  if (hasOwn || !bearer || (program && !authAddress)) return undefined;
  const { href } = authAddress ?? upstream;
  if (!authAddress) return (rejected?: string) => bearer(href, rejected);
  return async (rejected?: string) => {
    const token = await bearer(href, rejected);
    if (token === null) throw new AdapterAuthRequiredError(name);
    return token;
  };
}

function read(params: string | undefined): unknown {
  return params === undefined ? undefined : JSON.parse(params);
}
