import type { Channel } from '../../mcp/channel.js';
import { Link } from '../../mcp/link.js';
import { UpstreamAuthRequiredError } from '../../mcp/mcp-errors.js';
import { AdapterAuthRequiredError, ServerAuthRequiredError } from './run.errors.js';
import { underName } from './upstream-names.js';

/** What a link leads to, and how its callers may be told of it. */
export interface RunLinkTarget {
  serverId: string;
  releaseId: string;
  /** The server's qualified name. */
  serverName: string;
  upstream: URL;
  /** What callers may configure, in words; empty when there is nothing. */
  inputs: string;
}

/** The live end of a release for callers who send the same values. They hear of its failures by the server's name. */
export class RunLink extends Link {
  constructor(
    channel: Channel,
    readonly target: RunLinkTarget,
  ) {
    super(channel);
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
