import { withMember } from '../protocol/json-edit.js';
import { decodeCursor, encodeCursor } from '../../platform/http/cursor.js';
import { InvalidInputError } from '../../platform/errors/domain-error.js';
import type { McpCall, McpReply } from '../protocol/channel.js';
import { type ListKind, mcpLists } from '../protocol/list-pages.js';
import { rpcCode } from '../protocol/protocol.js';
import { MemberNames, qualifyUri, type Separator } from './member-names.js';
import { errorReply, resultReply } from '../protocol/messages.js';
import {
  type GatheredItems,
  type MemberRequests,
  type AggregateItem,
  type AggregateMembers,
  type AggregateSource,
} from './member-requests.js';

/** Limits of connections per page, and of items after which a page ends with the current batch of connections. */
const MEMBERS_OF_PAGE_MAX = 100;
const ITEMS_OF_PAGE = 2_000;

/** Size limit of a page in characters, unless one connection alone exceeds it. */
const CHARS_OF_PAGE = 16 * 1024 * 1024;

/** Limit of shadowed items reported individually. */
const SHADOWED_REPORTED_MAX = 100;

/** `_meta` names of a page's additional facts. */
const meta = { failed: 'slipway/failed', shadowed: 'slipway/shadowed', leftOut: 'slipway/left-out' };

/** Paginated lists of an aggregate. */
export class AggregateLists {
  private readonly known = new WeakMap<AggregateMembers, MemberNames>();

  constructor(
    private readonly source: AggregateSource,
    private readonly gathering: MemberRequests,
    private readonly separator: Separator,
  ) {}

  /** Current interpretation of the aggregate's names. */
  async names(): Promise<MemberNames> {
    return this.namesOf(await this.source.members());
  }

  /**
   * One page: the items of up to 100 connections, newest connection first. `_meta["slipway/failed"]` reports failed
   * connections, `_meta["slipway/shadowed"]` shadowed items ({@link MemberNames}).
   */
  async page(kind: ListKind, { params, timeoutMs, cancellation }: McpCall): Promise<McpReply> {
    const all = await this.source.members();
    let after: bigint | null;
    try {
      after = cursorOf(params);
    } catch (error) {
      if (error instanceof InvalidInputError) return errorReply(rpcCode.invalidParams, error.message);
      throw error;
    }
    const rest = after === null ? all.members : all.members.filter(({ seq }) => BigInt(seq) < after);
    const asked = rest.slice(0, MEMBERS_OF_PAGE_MAX);
    const gathered = fitting(
      await this.gathering.gather(asked, kind, { itemsMax: ITEMS_OF_PAGE, timeoutMs, cancellation }),
    );
    const last = gathered.at(-1);
    const nextCursor = last && gathered.length < rest.length ? encodeCursor(last.member.seq) : undefined;
    return resultReply(this.text(kind, gathered, all, nextCursor));
  }

  private text(
    kind: ListKind,
    gathered: GatheredItems[],
    all: AggregateMembers,
    nextCursor: string | undefined,
  ): string {
    const names = this.namesOf(all);
    const shadowed: { connectionId: string; name: string }[] = [];
    const items = gathered.flatMap((one) => {
      if (!('items' in one)) return [];
      const { connectionId } = one.member;
      const own = one.items.map(({ name }) => name);
      return one.items.flatMap((item) => {
        const text = this.qualified(kind, connectionId, item, own, names);
        if (text === null) shadowed.push({ connectionId, name: item.name });
        return text ?? [];
      });
    });
    const failed = gathered.flatMap((one) => ('fault' in one ? [one.fault] : []));
    const extra = {
      ...(failed.length > 0 && { [meta.failed]: failed }),
      ...(shadowed.length > 0 && { [meta.shadowed]: shadowed.slice(0, SHADOWED_REPORTED_MAX) }),
      ...(all.isCut && nextCursor === undefined && { [meta.leftOut]: leftOut(all) }),
    };
    const next = nextCursor === undefined ? '' : `,"nextCursor":${JSON.stringify(nextCursor)}`;
    const more = Object.keys(extra).length === 0 ? '' : `,"_meta":${JSON.stringify(extra)}`;
    return `{"${kind.member}":[${items.join(',')}]${next}${more}}`;
  }

  /** The item with its aggregate name; null when that name is read as another item's. */
  private qualified(
    kind: ListKind,
    connectionId: string,
    { name, text }: AggregateItem,
    own: string[],
    names: MemberNames,
  ): string | null {
    const isNamed = kind === mcpLists.tools || kind === mcpLists.prompts;
    if (isNamed && !names.isReachable(connectionId, name, own)) return null;
    const qualified = isNamed ? names.qualify(connectionId, name) : qualifyUri(connectionId, name);
    return withMember(text, kind.id, JSON.stringify(qualified));
  }

  private namesOf(all: AggregateMembers): MemberNames {
    const known = this.known.get(all) ?? new MemberNames(all.members, this.separator);
    this.known.set(all, known);
    return known;
  }
}

/** The first lists that fit on one page; the rest goes to the next page. */
function fitting(gathered: GatheredItems[]): GatheredItems[] {
  let chars = 0;
  const end = gathered.findIndex((one, at) => {
    if ('items' in one) chars += one.items.reduce((sum, { text }) => sum + text.length, 0);
    return at > 0 && chars > CHARS_OF_PAGE;
  });
  return end < 0 ? gathered : gathered.slice(0, end);
}

/** Reports the connections above the limit, which are omitted. */
export function leftOut({ members }: AggregateMembers): string {
  return `Only the newest ${members.length} connections take part; older ones are reached by their own addresses.`;
}

/** @throws InvalidInputError */
function cursorOf(params: string | undefined): bigint | null {
  const cursor = params === undefined ? undefined : (JSON.parse(params) as { cursor?: unknown }).cursor;
  if (cursor === undefined) return null;
  if (typeof cursor !== 'string') throw new InvalidInputError('cursor must be the nextCursor of an earlier answer');
  return BigInt(decodeCursor(cursor));
}
