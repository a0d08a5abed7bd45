import type { Channel, McpCall, McpReply } from '../../mcp/protocol/channel.js';
import { UpstreamHandle } from '../../mcp/client/upstream-handle.js';
import { UpstreamAuthRequiredError } from '../../mcp/protocol/mcp-errors.js';
import { AdapterAuthRequiredError, AdapterConnectionNeededError, ServerAuthRequiredError } from './run.errors.js';
import { underName } from '../../hosting/mcp/upstream-names.js';

/** What a link leads to, and how its callers may be told of it. */
export interface ReleaseHandleTarget {
  serverId: string;
  releaseId: string;
  /** The server's qualified name. */
  serverName: string;
  upstream: URL;
  /** What callers may configure, in words; empty when there is nothing. */
  inputs: string;
  /**
   * Where the server is called, if its code authorizes its users itself and these callers bring nothing to be known by:
   * they may look at it, and not use it. Null for all others.
   */
  closedAt: string | null;
}

/** What says the same to everybody. */
const OPEN = new Set([
  'ping',
  'server/discover',
  'logging/setLevel',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
]);

/** The live end of a release for callers who send the same values. They hear of its failures by the server's name. */
export class ReleaseHandle extends UpstreamHandle {
  constructor(
    channel: Channel,
    readonly target: ReleaseHandleTarget,
  ) {
    super(channel);
  }

  override request(call: McpCall): Promise<McpReply> {
    const { closedAt, serverName } = this.target;
    if (closedAt === null || OPEN.has(call.method)) return super.request(call);
    return Promise.reject(new AdapterConnectionNeededError(serverName, closedAt));
  }

  protected override failed(_method: string, error: Error): Error {
    const { serverName, upstream, inputs } = this.target;
    if (error instanceof AdapterAuthRequiredError) return error;
    if (error instanceof UpstreamAuthRequiredError) {
      return new ServerAuthRequiredError(serverName, inputs, error.challenges);
    }
    return underName(error, upstream, `"${serverName}"`);
  }
}
