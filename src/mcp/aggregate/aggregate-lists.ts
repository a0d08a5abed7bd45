import { withMember } from '../protocol/json-edit.js';
import { decodeCursor, encodeCursor } from '../../platform/http/cursor.js';
import { InvalidInputError } from '../../platform/errors/domain-error.js';
import type { McpCall, McpReply } from '../protocol/channel.js';
import { LEFT_OUT, LIST_ITEMS_MAX, type ListItem, type ListKind, mcpLists, skillList } from '../protocol/list-pages.js';
import { rpcCode } from '../protocol/protocol.js';
import { appUrisOf, readAppUri, rewriteAppUris, uniqueAppUri } from './app-uris.js';
import { repairedItems } from '../protocol/item-repair.js';
import { MemberNames, qualifyUri, readUri, type Separator } from './member-names.js';
import { errorReply, resultReply } from '../protocol/messages.js';
import {
  MEMBERS_MAX,
  type GatheredItems,
  type MemberCall,
  type MemberRequests,
  type AggregateMembers,
  type AggregateSource,
} from './member-requests.js';

/** Number of items after which a page ends with the current batch of connections. */
const ITEMS_OF_PAGE = 2_000;

/** Size limit of a page in characters, unless one connection alone exceeds it. */
const CHARS_OF_PAGE = 16 * 1024 * 1024;

export interface MemberItem {
  connectionId: string;
  name: string;
}

/** `_meta` names of a page's additional facts. */
const meta = { failed: 'slipway/failed', shadowed: 'slipway/shadowed', leftOut: LEFT_OUT };

export class AggregateLists {
  private readonly memberNames = new WeakMap<AggregateMembers, MemberNames>();

  constructor(
    private readonly source: AggregateSource,
    private readonly gathering: MemberRequests,
    private readonly separator: Separator,
  ) {}

  async names(): Promise<MemberNames> {
    return this.namesOf(await this.source.members());
  }

  /**
   * Finds an item by the aggregate name in either form, or by the own name if only one connection has it. A name that
   * its connection does not list is used as spelled. Null for unknown names.
   */
  async find(kind: ListKind, name: string, call: MemberCall): Promise<MemberItem | null> {
    const all = await this.source.members();
    const names = this.namesOf(all);
    const readings = names.read(name);
    const [first] = readings;
    if (!first) return this.findOwn(kind, name, all, call);
    const spelled = { connectionId: first.connectionId, name: first.rest };
    if (readings.length === 1 && first.isExact) return spelled;
    for (const reading of readings) {
      const { connectionId, rest } = reading;
      if (await this.gathering.hasListed(connectionId, kind, rest, call)) return { connectionId, name: rest };
      const members = all.members.filter((member) => member.connectionId === connectionId);
      const [list] = await this.gathering.gather(members, kind, { itemsMax: 1, ...call });
      const ownName = list && 'items' in list ? names.pick(name, reading, list.items) : undefined;
      if (ownName !== undefined) return { connectionId, name: ownName };
    }
    return spelled;
  }

  /** Returns null, even for an unknown item, if another connection has the name. */
  private async findOwn(
    kind: ListKind,
    name: string,
    { members, isCut }: AggregateMembers,
    call: MemberCall,
  ): Promise<MemberItem | null> {
    const usable = members.filter(({ fault }) => fault === null);
    const gathered = await this.gathering.gather(usable, kind, { itemsMax: LIST_ITEMS_MAX, ...call });
    if (isCut || gathered.length < usable.length || gathered.some((list) => 'fault' in list)) return null;
    const owners = gathered.filter((list) => 'items' in list && list.items.some((item) => item.name === name));
    const [only] = owners;
    return only && owners.length === 1 ? { connectionId: only.member.connectionId, name } : null;
  }

  /**
   * Finds a resource by its URI in a list, or by its own URI if only one connection exists, has tools that name it, has
   * a skill whose folder contains it, or lists it. Null for unknown URIs.
   */
  async findUri(uri: string, call: MemberCall): Promise<MemberItem | null> {
    const { members, isCut } = await this.source.members();
    const qualified = readUri(uri);
    const read = qualified ?? readAppUri(uri);
    const target = read && members.find(({ connectionId }) => connectionId === read.connectionId);
    if (read && target) return { connectionId: read.connectionId, name: read.rest };
    const [alone, ...more] = members;
    if (qualified || !alone) return null;
    if (more.length === 0 && !isCut) return { connectionId: alone.connectionId, name: uri };
    const usable = members.filter(({ fault }) => fault === null);
    const ownersIn = (gathered: GatheredItems[]) =>
      gathered.filter((list) => 'items' in list && appUrisOf(list.items).has(uri)).map(({ member }) => member);
    let owners = ownersIn(await this.gathering.lastTools(usable, call));
    if (owners.length === 0) {
      const limits = { itemsMax: LIST_ITEMS_MAX, ...call };
      owners = ownersIn(await this.gathering.gather(usable, mcpLists.tools, limits));
    }
    for (const kind of [skillList, mcpLists.resources]) {
      if (owners.length > 0) break;
      const gathered = await this.gathering.gather(usable, kind, { itemsMax: LIST_ITEMS_MAX, ...call });
      const names = ({ name }: ListItem) =>
        name === uri || (kind === skillList && uri.startsWith(name.replace(/[^/]*$/, '')));
      owners = gathered.filter((list) => 'items' in list && list.items.some(names)).map(({ member }) => member);
    }
    const [owner] = owners;
    return owner && owners.length === 1 ? { connectionId: owner.connectionId, name: uri } : null;
  }

  /**
   * Lists the items of up to 100 connections, newest connection first. `_meta["slipway/failed"]` reports failed connections,
   * `_meta["slipway/shadowed"]` shadowed items ({@link MemberNames}), `_meta["slipway/left-out"]` items that clients
   * would reject, with the reason of each.
   */
  async page(kind: ListKind, { params, ...call }: Pick<McpCall, 'params'> & MemberCall): Promise<McpReply> {
    const all = await this.source.members();
    const { cursor } = JSON.parse(params ?? '{}') as { cursor?: unknown };
    if (cursor !== undefined && typeof cursor !== 'string') {
      return errorReply(rpcCode.invalidParams, 'cursor must be the nextCursor of an earlier answer');
    }
    let after: bigint | null;
    try {
      after = cursor === undefined ? null : BigInt(decodeCursor(cursor));
    } catch (error) {
      if (error instanceof InvalidInputError) return errorReply(rpcCode.invalidParams, error.message);
      throw error;
    }
    const rest = after === null ? all.members : all.members.filter(({ seq }) => BigInt(seq) < after);
    const batch = rest.slice(0, MEMBERS_MAX);
    const lists = await this.gathering.gather(batch, kind, { itemsMax: ITEMS_OF_PAGE, ...call });
    // Lists beyond the size of a page go to the next one.
    let chars = 0;
    const end = lists.findIndex((list, at) => {
      if ('items' in list) chars += list.items.reduce((sum, { text }) => sum + text.length, 0);
      return at > 0 && chars > CHARS_OF_PAGE;
    });
    const gathered = end < 0 ? lists : lists.slice(0, end);
    const last = gathered.at(-1);
    const nextCursor = last && gathered.length < rest.length ? encodeCursor(last.member.seq) : undefined;
    return resultReply(await this.text(kind, gathered, all, nextCursor));
  }

  private async text(
    kind: ListKind,
    gathered: GatheredItems[],
    all: AggregateMembers,
    nextCursor: string | undefined,
  ): Promise<string> {
    const repaired = new Map<GatheredItems, Awaited<ReturnType<typeof repairedItems>>>();
    for (const list of gathered) {
      if ('items' in list) repaired.set(list, await repairedItems(kind, list.items, list.member.seq));
    }
    const names = this.namesOf(all);
    const shadowed: { connectionId: string; name: string }[] = [];
    const appUri = kind === mcpLists.tools ? listedAppUris(gathered, all) : null;
    const owners = kind === skillList ? ownersOf(gathered, (list) => list.map(({ name }) => name)) : null;
    const missing: { connectionId?: string; name?: string | null; reason: string }[] = [];
    const items = gathered.flatMap((list) => {
      const usable = repaired.get(list);
      if (!('items' in list) || !usable) return [];
      const { connectionId } = list.member;
      missing.push(...[...list.leftOut, ...usable.leftOut].map((item) => ({ connectionId, ...item })));
      const isNamed = kind === mcpLists.tools || kind === mcpLists.prompts;
      const listedNames = isNamed ? names.namesOf(connectionId, list.items) : null;
      const current = new Set(list.items.map(({ name }) => name));
      return usable.items.flatMap((item) => {
        if (!current.has(item.name)) return [];
        const isOwn = owners?.get(item.name) === 1;
        const name = listedNames ? listedNames.get(item.name) : isOwn ? item.name : qualifyUri(connectionId, item.name);
        const text = appUri ? rewriteAppUris(item.text, (uri) => appUri(connectionId, uri)) : item.text;
        if (name !== undefined) return withMember(text, kind.id, JSON.stringify(name));
        shadowed.push({ connectionId, name: item.name });
        return [];
      });
    });
    if (all.isCut && nextCursor === undefined) missing.push({ reason: leftOut(all) });
    const failed = gathered.flatMap((list) => ('fault' in list ? [list.fault] : []));
    const extra = {
      ...(failed.length > 0 && { [meta.failed]: failed }),
      ...(shadowed.length > 0 && { [meta.shadowed]: shadowed }),
      ...(missing.length > 0 && { [meta.leftOut]: missing }),
    };
    const next = nextCursor === undefined ? '' : `,"nextCursor":${JSON.stringify(nextCursor)}`;
    const more = Object.keys(extra).length === 0 ? '' : `,"_meta":${JSON.stringify(extra)}`;
    return `{"${kind.member}":[${items.join(',')}]${next}${more}}`;
  }

  private namesOf(all: AggregateMembers): MemberNames {
    const names = this.memberNames.get(all) ?? new MemberNames(all.members, this.separator);
    this.memberNames.set(all, names);
    return names;
  }
}

/** Returns a connection's own URIs if the page covers the tools of all connections and no other connection has them. */
function listedAppUris(
  gathered: GatheredItems[],
  { members, isCut }: AggregateMembers,
): (connectionId: string, uri: string) => string {
  const owners = ownersOf(gathered, appUrisOf);
  const isWhole = !isCut && gathered.length === members.length;
  const isOwn = (uri: string) => isWhole && owners.get(uri) === 1 && readAppUri(uri) === null;
  return (connectionId, uri) => (isOwn(uri) ? uri : uniqueAppUri(connectionId, uri));
}

function ownersOf(gathered: GatheredItems[], urisOf: (items: ListItem[]) => Iterable<string>): Map<string, number> {
  const owners = new Map<string, number>();
  for (const list of gathered) {
    if (!('items' in list)) continue;
    for (const uri of urisOf(list.items)) owners.set(uri, (owners.get(uri) ?? 0) + 1);
  }
  return owners;
}

export function leftOut({ members }: AggregateMembers): string {
  return `Only the newest ${members.length} connections take part; older ones are reached by their own addresses.`;
}
