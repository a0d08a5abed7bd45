import type {
  Channel,
  Listening,
  ListenFilter,
  McpCall,
  McpReply,
  UpstreamListener,
} from '../../mcp/protocol/channel.js';
import type { UpstreamIdentity } from '../../mcp/protocol/protocol.js';
import { underName } from './upstream-names.js';

/** A channel whose failures name the server, not the address it is known by here. */
export class NamedChannel implements Channel {
  /**
   * @param name with its quotes, such as `"acme/weather"`
   * @param keepsSessions each caller gets an upstream session of its own: the server remembers what it is told in one
   * @param shared the profile key of callers who have no name, when they too have a session that is kept
   */
  constructor(
    private readonly channel: Channel,
    private readonly upstream: URL,
    private readonly name: string,
    private readonly keepsSessions: boolean,
    private readonly shared?: string,
  ) {}

  open(timeoutMs: number): Promise<UpstreamIdentity> {
    return this.named(this.channel.open(timeoutMs));
  }

  request(call: McpCall): Promise<McpReply> {
    return this.named(this.channel.request(this.keepsSessions ? this.inOwnSession(call) : call));
  }

  listen(filter: ListenFilter, listener: UpstreamListener, timeoutMs: number): Promise<Listening> {
    return this.named(this.channel.listen(filter, listener, timeoutMs));
  }

  release(profileKey: string, forGood?: boolean): Promise<void> {
    return this.channel.release(profileKey, forGood);
  }

  async close(forGood = false): Promise<void> {
    if (forGood && this.shared !== undefined) await this.channel.release(this.shared, true);
    await this.channel.close(forGood);
  }

  /** A caller that can be asked back has its own session already, unless it is one for each of the calls it makes at once. */
  private inOwnSession(call: McpCall): McpCall {
    const { profile, caller } = call;
    const key = caller ?? this.shared;
    if (key === undefined || (profile && !profile.mayShare)) return call;
    return { ...call, profile: { key, capabilities: profile?.capabilities ?? {} } };
  }

  private async named<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      throw underName(error as Error, this.upstream, this.name);
    }
  }
}
