import { someAtOnce } from '../../platform/limits/some-at-once.js';
import { deadlineIn, withinDeadline } from '../protocol/deadline.js';
import { CLIENT_INFO, MODERN_VERSION, type Era, type UpstreamIdentity } from '../protocol/protocol.js';
import { isObject } from '../../platform/text/json.js';
import { isDeclared } from '../protocol/list-pages.js';
import type { AggregateMember, AggregateSource } from './member-requests.js';

/** Limits of connections whose identity is read, of concurrent attempts, and time for all of them. */
const MEMBERS_MAX = 100;
const PARALLEL = 8;
const WAIT_MS = 3_000;

/** Timeout of opening one connection. Longer than the wait, which must not count as a failure of the connection. */
const OPEN_MS = 30_000;

/** Lifetime of an identity; connections that come, go or change their state end it at once. */
const FRESH_MS = 30_000;

/** Size limits of the instructions of one connection, and of all. */
const INSTRUCTIONS_BYTES_MAX = 4 * 1024;
const ALL_INSTRUCTIONS_BYTES_MAX = 16 * 1024;

/** The identity of one connection. */
interface MemberIdentity {
  connectionId: string;
  identity: UpstreamIdentity;
}

/** Identity of an aggregate: its own, with the instructions and the optional capabilities of its connections. */
export class AggregateIdentity {
  private readonly known = new Map<Era, { of: string; until: number; identity: Promise<UpstreamIdentity> }>();

  /** @param instructions those of the aggregate itself */
  constructor(
    private readonly source: AggregateSource,
    private readonly instructions: string,
  ) {}

  /**
   * Reads the identities of connected members, in 3 s at most; one that is slower is left out.
   *
   * @param era in which members of both eras are asked: they offer clients of the two eras different capabilities
   */
  async read(era: Era = 'modern'): Promise<UpstreamIdentity> {
    const { members } = await this.source.members();
    const of = members.map(({ seq, state }) => `${seq} ${state}`).join();
    const known = this.known.get(era);
    if (known?.of === of && known.until >= Date.now()) return known.identity;
    const identity = this.compose(members, era);
    identity.catch(() => this.known.delete(era));
    this.known.set(era, { of, until: Date.now() + FRESH_MS, identity });
    return identity;
  }

  private async compose(members: AggregateMember[], era: Era): Promise<UpstreamIdentity> {
    const found = await this.gather(members.filter(({ state }) => state === 'connected').slice(0, MEMBERS_MAX), era);
    const offered = found.map(({ identity }) => identity.capabilities);
    const joint = (name: string) => {
      const found = offered.map((one) => one[name]).filter(isObject);
      return found.length > 0 && { [name]: Object.assign({}, ...found) as object };
    };
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
      instructions: this.instructions + joined(found),
    };
  }

  private async gather(members: AggregateMember[], era: Era): Promise<MemberIdentity[]> {
    const timeLeft = deadlineIn(WAIT_MS);
    const found: MemberIdentity[] = [];
    await someAtOnce(PARALLEL, members.entries(), async ([i, { connectionId }]) => {
      try {
        const opened = this.source.handle(connectionId).then((handle) => handle.open(OPEN_MS, era));
        const identity = await withinDeadline(opened, timeLeft(), 'The MCP server did not introduce itself in time.');
        found[i] = { connectionId, identity };
      } catch (error) {
        // Rethrows errors that are not failures of the connection.
        this.source.faultOf(connectionId, error);
      }
    });
    return found.filter((identity) => identity !== undefined);
  }
}

/** The instructions of connections, each under its connection's id, newest first. */
function joined(identities: MemberIdentity[]): string {
  let text = '';
  for (const { connectionId, identity } of identities) {
    const own = identity.instructions?.trim();
    if (!own) continue;
    const part = `\n\n## ${connectionId}\n${cut(own, INSTRUCTIONS_BYTES_MAX)}`;
    if (Buffer.byteLength(text + part) > ALL_INSTRUCTIONS_BYTES_MAX) break;
    text += part;
  }
  return text;
}

/** The beginning of a text of at most this many bytes, with `…` for the rest. */
function cut(text: string, bytesMax: number): string {
  const bytes = Buffer.from(text, 'utf8');
  if (bytes.length <= bytesMax) return text;
  return `${new TextDecoder().decode(bytes.subarray(0, bytesMax - 3), { stream: true })}…`;
}
