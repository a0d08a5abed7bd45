import { someAtOnce } from '../../platform/limits/some-at-once.js';
import { deadlineIn, withinDeadline } from '../protocol/deadline.js';
import { CLIENT_INFO, MODERN_VERSION, PARALLEL, type Era, type UpstreamIdentity } from '../protocol/protocol.js';
import { isObject } from '../../platform/text/json.js';
import { isDeclared } from '../protocol/list-pages.js';
import { MEMBERS_MAX, type AggregateMember, type AggregateSource } from './member-requests.js';

const WAIT_MS = 3_000;

/** Timeout of opening one connection. Longer than the wait, so that a slow connection is not reported as failed. */
const OPEN_MS = 30_000;

/** A connection that is added, removed or changes its state invalidates the identity immediately. */
const FRESH_MS = 30_000;

/** Size limits of the instructions of one connection, and of all. */
const INSTRUCTIONS_BYTES_MAX = 4 * 1024;
const ALL_INSTRUCTIONS_BYTES_MAX = 16 * 1024;

export class AggregateIdentity {
  private readonly byEra = new Map<Era, { of: string; until: number; identity: Promise<UpstreamIdentity> }>();

  /** @param instructions those of the aggregate itself */
  constructor(
    private readonly source: AggregateSource,
    private readonly instructions: string,
  ) {}

  /**
   * Reads the identities of connected members within 3 s; slower ones are left out.
   *
   * @param era in which members of both eras are called: they offer clients of the two eras different capabilities
   */
  async read(era: Era = 'modern'): Promise<UpstreamIdentity> {
    const { members } = await this.source.members();
    const of = members.map(({ seq, state }) => `${seq} ${state}`).join();
    const cached = this.byEra.get(era);
    if (cached?.of === of && cached.until >= Date.now()) return cached.identity;
    const identity = this.compose(members, era);
    identity.catch(() => this.byEra.delete(era));
    this.byEra.set(era, { of, until: Date.now() + FRESH_MS, identity });
    return identity;
  }

  private async compose(members: AggregateMember[], era: Era): Promise<UpstreamIdentity> {
    const connected = members.filter(({ state }) => state === 'connected').slice(0, MEMBERS_MAX);
    const timeLeft = deadlineIn(WAIT_MS);
    const read: { connectionId: string; identity: UpstreamIdentity }[] = [];
    await someAtOnce(PARALLEL, connected.entries(), async ([i, { connectionId }]) => {
      try {
        const opened = this.source.handle(connectionId).then((handle) => handle.open(OPEN_MS, era));
        const identity = await withinDeadline(opened, timeLeft(), 'The MCP server did not introduce itself in time.');
        read[i] = { connectionId, identity };
      } catch (error) {
        this.source.faultOf(connectionId, error);
      }
    });
    const identities = read.filter((member) => member !== undefined);
    const offered = identities.map(({ identity }) => identity.capabilities);
    const joint = (name: string) => {
      const values = offered.map((capabilities) => capabilities[name]).filter(isObject);
      return values.length > 0 && { [name]: Object.assign({}, ...values) as object };
    };
    let instructions = '';
    for (const { connectionId, identity } of identities) {
      const text = identity.instructions?.trim();
      if (!text) continue;
      const part = `\n\n## ${connectionId}\n${truncate(text, INSTRUCTIONS_BYTES_MAX)}`;
      if (Buffer.byteLength(instructions + part) > ALL_INSTRUCTIONS_BYTES_MAX) break;
      instructions += part;
    }
    return {
      // Modern, so that it receives the client capabilities of both eras; its members may be of either.
      era: 'modern',
      protocolVersion: MODERN_VERSION,
      capabilities: {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { listChanged: true, subscribe: true },
        completions: {},
        ...(offered.some(({ logging }) => isDeclared(logging)) && { logging: {} }),
        ...joint('experimental'),
        ...joint('extensions'),
      },
      serverInfo: { ...CLIENT_INFO, name: `${CLIENT_INFO.name}/${this.source.name}` },
      instructions: this.instructions + instructions,
    };
  }
}

/** Truncates a string to `bytesMax` bytes, with `…` for the rest. */
function truncate(text: string, bytesMax: number): string {
  const bytes = Buffer.from(text, 'utf8');
  if (bytes.length <= bytesMax) return text;
  return `${new TextDecoder().decode(bytes.subarray(0, bytesMax - 3), { stream: true })}…`;
}
