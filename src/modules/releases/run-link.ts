import type { Channel } from '../../mcp/channel.js';
import { Link } from '../../mcp/link.js';
import {
  CallerLeftError,
  UpstreamAuthRequiredError,
  UpstreamError,
  UpstreamFailure,
  UpstreamTimeoutError,
} from '../../mcp/mcp-errors.js';
import { ServerAuthRequiredError } from './run.errors.js';

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
    if (!(error instanceof UpstreamFailure) || error instanceof CallerLeftError) return error;
    const { serverName, upstream, inputs } = this.target;
    if (error instanceof UpstreamAuthRequiredError)
      return new ServerAuthRequiredError(serverName, inputs, error.challenges);
    const message = withoutAddress(error.message, upstream, `"${serverName}"`);
    return error instanceof UpstreamTimeoutError
      ? new UpstreamTimeoutError(message, error.outcomeUnknown)
      : new UpstreamError(message, error, error.outcomeUnknown);
  }
}

/**
 * The text with `name` where it named the upstream. Where a release runs is its owner's to know, and the path of an
 * upstream may be a secret; callers may be anybody.
 */
export function withoutAddress(text: string, { origin, pathname, host, hostname }: URL, name: string): string {
  const named = (rest: string, address: string) => {
    const escaped = address.replace(/\W/g, '\\$&');
    return rest.replace(new RegExp(`(?<![\\w./-])"?${escaped}"?(?![\\w/-])`, 'g'), () => name);
  };
  const withoutUrls = named(text, `${origin}${pathname}`).replace(/https?:\/\/\S*[^\s.:,]/g, 'another address');
  return [host, hostname].reduce(named, withoutUrls);
}
