import type { Channel, McpCall } from '../../mcp/protocol/channel.js';
import { UpstreamHandle } from '../../mcp/client/upstream-handle.js';
import { UpstreamAuthRequiredError } from '../../mcp/protocol/mcp-errors.js';
import { AdapterAuthRequiredError, AdapterConnectionNeededError, ServerAuthRequiredError } from './run.errors.js';

/** The release of a handle, and its data for error messages. */
export interface ReleaseHandleTarget {
  serverId: string;
  releaseId: string;
  /** The server's qualified name. */
  serverName: string;
  /** Names of the configuration values, such as `header "x-token"`; empty without any. */
  inputs: string;
  /**
   * The run endpoint, if the server's code has an auth adapter and these callers sent no token: they may list, but not
   * call. Null for all others.
   */
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

/** Open upstream sessions of a release, for callers who send the same values. */
export class ReleaseHandle extends UpstreamHandle {
  constructor(
    channel: Channel,
    readonly target: ReleaseHandleTarget,
  ) {
    super(channel);
  }

  protected override refusal({ method }: McpCall): Error | null {
    const { closedAt, serverName } = this.target;
    if (closedAt === null || CALLER_INDEPENDENT.has(method)) return null;
    return new AdapterConnectionNeededError(serverName, closedAt);
  }

  protected override failed(_method: string, error: Error): Error {
    const { serverName, inputs } = this.target;
    if (error instanceof AdapterAuthRequiredError) return error;
    if (error instanceof UpstreamAuthRequiredError) {
      return new ServerAuthRequiredError(serverName, inputs, error.challenges);
    }
    return error;
  }
}
