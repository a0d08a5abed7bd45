import type {
  Channel,
  Listening,
  ListenFilter,
  McpCall,
  McpReply,
  UpstreamListener,
} from '../../mcp/protocol/channel.js';
import type { UpstreamHandle } from '../../mcp/client/upstream-handle.js';
import type { UpstreamIdentity } from '../../mcp/protocol/protocol.js';

/** What a {@link ServerChannel} needs of those who know releases. */
export interface ServerChannelSource<R extends { releaseId: string }> {
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
export class ServerChannel<R extends { releaseId: string }> implements Channel {
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
