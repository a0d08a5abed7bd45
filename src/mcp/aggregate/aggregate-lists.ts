import { withMember } from '../protocol/json-edit.js';
import { decodeCursor, encodeCursor } from '../../platform/http/cursor.js';
import { InvalidInputError } from '../../platform/errors/domain-error.js';
import type { McpCall, McpReply, UpstreamListener } from '../protocol/channel.js';
import { members as membersOf, splice, slice } from '../protocol/json-text.js';
import { type ListKind, mcpLists, RESOURCE_UPDATED } from '../protocol/list-pages.js';
import { rpcCode } from '../protocol/protocol.js';
import { MemberNames, qualifyUri, type Separator, readUri } from './member-names.js';
import { errorReply, resultReply, withList } from '../protocol/messages.js';
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

const LISTEN_TIMEOUT_MS = 5_000;

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

/** A `resources/read` result with the aggregate's URIs. */
export function withQualifiedContents(reply: McpReply, connectionId: string): McpReply {
  return withList(reply, 'contents', (items) => items.map((item) => withQualifiedUri(item, connectionId)));
}

/** Listens to resource updates of the connections that own the URIs. Connections that fail honour nothing. */
export async function listenToResources(
  source: AggregateSource,
  uris: string[],
  listener: UpstreamListener,
): Promise<{ uris: string[]; close: () => Promise<void> }> {
  const own = await Promise.all(
    groups(uris).map(([connectionId, rest]) => listenTo(source, connectionId, rest, listener)),
  );
  return {
    uris: own.flatMap((one) => one.uris),
    close: async () => {
      await Promise.all(own.map((one) => one.close()));
    },
  };
}

async function listenTo(
  source: AggregateSource,
  connectionId: string,
  uris: string[],
  listener: UpstreamListener,
): Promise<{ uris: string[]; close: () => Promise<void> }> {
  const own: UpstreamListener = {
    onNotification: (text, method) => {
      if (method !== RESOURCE_UPDATED) return;
      const params = membersOf(text).get('params');
      listener.onNotification(
        params ? splice(text, params, withQualifiedUri(slice(text, params), connectionId)) : text,
        method,
      );
    },
    onEnd: () => undefined,
  };
  try {
    const handle = await source.handle(connectionId);
    const listening = await handle.listen({ resourceSubscriptions: uris }, own, LISTEN_TIMEOUT_MS);
    const honoured = listening.honoured.resourceSubscriptions ?? [];
    return { uris: honoured.map((uri) => qualifyUri(connectionId, uri)), close: () => listening.close() };
  } catch (error) {
    // Rethrows errors that are not failures of the connection.
    source.faultOf(connectionId, error);
    return { uris: [], close: async () => undefined };
  }
}

/** Groups URIs by connection. */
function groups(uris: string[]): [connectionId: string, uris: string[]][] {
  const found = new Map<string, string[]>();
  for (const uri of uris) {
    const read = readUri(uri);
    if (read) found.set(read.connectionId, [...(found.get(read.connectionId) ?? []), read.rest]);
  }
  return [...found];
}

/** An object's JSON text with the aggregate's form of its `uri`. */
function withQualifiedUri(text: string, connectionId: string): string {
  const span = text.startsWith('{') ? membersOf(text).get('uri') : undefined;
  const own: unknown = span && JSON.parse(slice(text, span));
  return typeof own === 'string' ? withMember(text, 'uri', JSON.stringify(qualifyUri(connectionId, own))) : text;
}
