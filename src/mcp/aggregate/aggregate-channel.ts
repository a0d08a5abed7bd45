import { withMember } from '../protocol/json-edit.js';
import { quoted } from '../../platform/text/quoted.js';
import type {
  CallerProfile,
  Channel,
  ListenFilter,
  Listening,
  McpCall,
  McpReply,
  UpstreamListener,
} from '../protocol/channel.js';
import { members as membersOf, slice, splice } from '../protocol/json-text.js';
import type { UpstreamHandle } from '../client/upstream-handle.js';
import { mcpLists, type ListKind } from '../protocol/list-pages.js';
import { CLIENT_INFO, MODERN_VERSION, rpcCode, type UpstreamIdentity } from '../protocol/protocol.js';
import { readUri, withQualifiedContents, type Separator } from './member-names.js';
import { errorReply, toolFailureReply } from '../protocol/messages.js';
import { SearchTools } from './search-tools.js';
import { AggregateEvents, listenToResources } from './aggregate-events.js';
import { MemberRequests, type AggregateSource } from './member-requests.js';
import { AggregateLists } from './aggregate-lists.js';

/** Limit of client sessions whose upstream sessions are tracked, so that they end together. */
const PROFILES_MAX = 10_000;

/** Name separator and mode of an aggregate. */
export interface AggregateForm {
  separator: Separator;
  /** Offers three search tools instead of all tools. */
  isSearched: boolean;
}

const listOf = new Map<string, ListKind>(Object.values(mcpLists).map((kind) => [kind.method, kind]));

/**
 * All connections of a namespace as one MCP server. Tools and prompts are named `connectionId.name`, resources have
 * `connection://connectionId/` in front of their URI. Results pass unchanged; URIs inside a tool's result are the server's
 * own. One failing upstream never fails the rest.
 */
export class AggregateChannel implements Channel {
  private readonly gathering: MemberRequests;
  private readonly lists: AggregateLists;
  private readonly search: SearchTools;
  private readonly events: AggregateEvents;
  /** Upstream handles on which a client's session owns sessions. */
  private readonly profiles = new Map<string, Set<UpstreamHandle>>();

  constructor(
    private readonly source: AggregateSource,
    private readonly form: AggregateForm,
  ) {
    this.gathering = new MemberRequests(source);
    this.lists = new AggregateLists(source, this.gathering, form.separator);
    this.search = new SearchTools(source, this.gathering, this.lists);
    this.events = new AggregateEvents(source);
  }

  open(): Promise<UpstreamIdentity> {
    const { separator, isSearched } = this.form;
    return Promise.resolve({
      // Modern, so that it receives the client capabilities of both eras; its members may be of either.
      era: 'modern',
      protocolVersion: MODERN_VERSION,
      capabilities: {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { listChanged: true, subscribe: true },
        completions: {},
      },
      serverInfo: { ...CLIENT_INFO, name: `${CLIENT_INFO.name}/${this.source.name}` },
      instructions:
        `The MCP servers connected in ${this.source.name}. ` +
        (isSearched
          ? 'Find a tool with search_tools, read its arguments with describe_tool, run it with call_tool.'
          : `A tool is named by its connection: connection${separator}tool.`),
    });
  }

  async request(call: McpCall): Promise<McpReply> {
    const { method, params } = call;
    const list = listOf.get(method);
    if (list) return list === mcpLists.tools && this.form.isSearched ? this.search.list() : this.lists.page(list, call);
    const given = JSON.parse(params ?? '{}') as {
      name?: unknown;
      uri?: unknown;
      ref?: { name?: unknown; uri?: unknown };
    };
    switch (method) {
      case 'tools/call':
        return (
          (this.form.isSearched ? await this.search.call(call, (own) => this.callTool(call, own)) : null) ??
          this.callTool(call, params)
        );
      case 'prompts/get':
        return this.named(call, 'prompt', given.name, (name) =>
          withMember(params ?? '{}', 'name', JSON.stringify(name)),
        );
      case 'resources/read':
        return this.located(call, given.uri, (uri) => withMember(params ?? '{}', 'uri', JSON.stringify(uri)));
      case 'completion/complete': {
        const inRef = (member: string) => (value: string) => withRef(params ?? '{}', member, value);
        return typeof given.ref?.uri === 'string'
          ? this.located(call, given.ref.uri, inRef('uri'))
          : this.named(call, 'prompt', given.ref?.name, inRef('name'));
      }
      default:
        return errorReply(rpcCode.methodNotFound, `The connections of a namespace have no ${quoted(method)} together`);
    }
  }

  /** List changes of all connections, and resource updates of the connections named in the filter. */
  async listen(filter: ListenFilter, listener: UpstreamListener): Promise<Listening> {
    const { resourceSubscriptions = [], ...lists } = filter;
    const { uris, close } = await listenToResources(this.source, resourceSubscriptions, listener);
    const stop = this.events.add(lists, listener);
    return {
      honoured: { ...lists, ...(uris.length > 0 && { resourceSubscriptions: uris }) },
      close: () => {
        stop();
        return close();
      },
    };
  }

  async release(profileKey: string, forGood?: boolean): Promise<void> {
    const handles = [...(this.profiles.get(profileKey) ?? [])];
    this.profiles.delete(profileKey);
    await Promise.all(handles.map((handle) => handle.release(profileKey, forGood)));
  }

  async close(): Promise<void> {
    this.events.close();
    await Promise.all([...this.profiles.keys()].map((key) => this.release(key)));
  }

  /** In search mode, errors of the arguments are tool results, which reach the model. */
  private callTool(call: McpCall, params: string | undefined): Promise<McpReply> {
    const { name } = JSON.parse(params ?? '{}') as { name?: unknown };
    return this.named(call, 'tool', name, (own) => withMember(params ?? '{}', 'name', JSON.stringify(own)));
  }

  private async named(
    call: McpCall,
    what: 'tool' | 'prompt',
    name: unknown,
    paramsFor: (name: string) => string,
  ): Promise<McpReply> {
    const names = await this.lists.names();
    const read = typeof name === 'string' ? names.read(name) : null;
    if (!read) {
      const text = `Unknown ${what}: ${quoted(String(name))}. Names begin with a connection of ${this.source.name}.`;
      return this.form.isSearched && what === 'tool' ? toolFailureReply(text) : errorReply(rpcCode.invalidParams, text);
    }
    const handle = await this.source.handle(read.connectionId);
    let own = read.rest;
    if (names.isAltered(own)) {
      const member = { connectionId: read.connectionId, seq: '0', state: '', fault: null };
      const kind = what === 'tool' ? mcpLists.tools : mcpLists.prompts;
      const [one] = await this.gathering.gather([member], kind, { itemsMax: 1, timeoutMs: call.timeoutMs });
      if (one && 'items' in one)
        own =
          names.pick(
            one.items.map((item) => item.name),
            own,
          ) ?? own;
    }
    return this.forward(handle, call, what === 'tool' ? own : null, paramsFor(own));
  }

  private async located(call: McpCall, uri: unknown, paramsFor: (uri: string) => string): Promise<McpReply> {
    const read = typeof uri === 'string' ? readUri(uri) : null;
    const { members } = await this.source.members();
    if (!read || !members.some(({ connectionId }) => connectionId === read.connectionId)) {
      const text = `Unknown resource: ${quoted(String(uri), 200)}. Write connection://<connectionId>/ in front of a server's own URI.`;
      return errorReply(rpcCode.invalidParams, text);
    }
    const handle = await this.source.handle(read.connectionId);
    const reply = await this.forward(handle, call, null, paramsFor(read.rest));
    return call.method === 'resources/read' ? withQualifiedContents(reply, read.connectionId) : reply;
  }

  private forward(handle: UpstreamHandle, call: McpCall, tool: string | null, params: string): Promise<McpReply> {
    return this.source.watch(handle, call.method, tool, async ({ timing, invocationId }) => {
      try {
        const profile = await this.profileFor(handle, call);
        return await handle.request({ ...call, params, timing, invocationId, profile });
      } finally {
        if (call.timing) Object.assign(call.timing, timing);
      }
    });
  }

  /**
   * Caller profile for this upstream: a legacy one sends requests during a call, which only some callers can answer.
   */
  private async profileFor(
    handle: UpstreamHandle,
    { profile, onRequest, timeoutMs }: McpCall,
  ): Promise<CallerProfile | undefined> {
    if (!profile) return undefined;
    if (!onRequest && (await handle.open(timeoutMs)).era === 'legacy') return undefined;
    // A caller that may share a session has none of its own to end.
    if (!profile.mayShare) this.remember(profile.key, handle);
    return profile;
  }

  private remember(profileKey: string, handle: UpstreamHandle): void {
    const handles = this.profiles.get(profileKey) ?? new Set();
    handles.add(handle);
    this.profiles.delete(profileKey);
    this.profiles.set(profileKey, handles);
    const [oldest] = this.profiles.keys();
    if (this.profiles.size > PROFILES_MAX && oldest !== undefined) void this.release(oldest);
  }
}

function withRef(params: string, member: string, value: string): string {
  const ref = membersOf(params).get('ref');
  return ref ? splice(params, ref, withMember(slice(params, ref), member, JSON.stringify(value))) : params;
}
