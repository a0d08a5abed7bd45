import { decodeCursor, encodeCursor } from '../../platform/http/cursor.js';
import { InvalidInputError } from '../../platform/errors/domain-error.js';
import type { McpCall, McpReply } from '../protocol/channel.js';
import { members as membersOf, splice } from '../protocol/json-text.js';
import { type ListKind, mcpLists } from '../protocol/list-pages.js';
import { rpcCode } from '../protocol/protocol.js';
import { MemberNames, qualifyUri, type Separator } from './member-names.js';
import { errorReply, resultReply } from './own-reply.js';
import { namingMember, type GatheredItems, type MemberRequests, type AggregateItem } from './member-requests.js';
import type { AggregateMembers, AggregateSource } from './member-requests.js';

/** Connections one page is about at most, and items after which it ends with the connections that are being asked. */
const MEMBERS_OF_PAGE_MAX = 100;
const ITEMS_OF_PAGE = 2_000;

/** Items of one page together, unless one connection alone has more: each page is a text of its own. */
const CHARS_OF_PAGE = 16 * 1024 * 1024;

/** Things left out of a page that are told one by one. */
const SHADOWED_TOLD_MAX = 100;

/** What a page says besides its items, in its `_meta`. */
const meta = { failed: 'slipway/failed', shadowed: 'slipway/shadowed', leftOut: 'slipway/left-out' };

/** The lists of a union, in pages. */
export class AggregateLists {
  private readonly known = new WeakMap<AggregateMembers, MemberNames>();

  constructor(
    private readonly source: AggregateSource,
    private readonly gathering: MemberRequests,
    private readonly separator: Separator,
  ) {}

  /** How names of the union are read now. */
  async names(): Promise<MemberNames> {
    return this.namesOf(await this.source.members());
  }

  /**
   * One page: the things of up to 100 connections, newest connection first. Who could not be asked stands in
   * `_meta["slipway/failed"]`, what is shadowed in `_meta["slipway/shadowed"]` ({@link MemberNames}).
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
    const told = {
      ...(failed.length > 0 && { [meta.failed]: failed }),
      ...(shadowed.length > 0 && { [meta.shadowed]: shadowed.slice(0, SHADOWED_TOLD_MAX) }),
      ...(all.isCut && nextCursor === undefined && { [meta.leftOut]: leftOut(all) }),
    };
    const next = nextCursor === undefined ? '' : `,"nextCursor":${JSON.stringify(nextCursor)}`;
    const more = Object.keys(told).length === 0 ? '' : `,"_meta":${JSON.stringify(told)}`;
    return `{"${kind.member}":[${items.join(',')}]${next}${more}}`;
  }

  /** The item under its name in the union; null when that name is another's. */
  private qualified(
    kind: ListKind,
    connectionId: string,
    { name, text }: AggregateItem,
    own: string[],
    names: MemberNames,
  ): string | null {
    const isNamed = kind === mcpLists.tools || kind === mcpLists.prompts;
    if (isNamed && !names.isReachable(connectionId, name, own)) return null;
    const member = namingMember(kind);
    const qualified = isNamed ? names.qualify(connectionId, name) : qualifyUri(connectionId, name);
    return withMember(text, member, qualified);
  }

  private namesOf(all: AggregateMembers): MemberNames {
    const known = this.known.get(all) ?? new MemberNames(all.members, this.separator);
    this.known.set(all, known);
    return known;
  }
}

/** The first of them, as many as fit on one page; the others are on the next one. */
function fitting(gathered: GatheredItems[]): GatheredItems[] {
  let chars = 0;
  const end = gathered.findIndex((one, at) => {
    if ('items' in one) chars += one.items.reduce((sum, { text }) => sum + text.length, 0);
    return at > 0 && chars > CHARS_OF_PAGE;
  });
  return end < 0 ? gathered : gathered.slice(0, end);
}

/** An object's JSON text with another text in one of its members. */
export function withMember(text: string, member: string, value: string): string {
  const span = membersOf(text).get(member);
  return span ? splice(text, span, JSON.stringify(value)) : text;
}

/** Which connections take no part because there are too many. */
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
