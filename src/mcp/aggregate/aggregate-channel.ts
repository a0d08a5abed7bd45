/**
 * All connections of a namespace as one MCP server.
 *
 * Tools and prompts are named `connection__tool` or `connection.tool` (`member-names.ts`), resource URIs are prefixed
 * with `connection://connectionId/`, in lists, results and notifications. Skills keep their own URIs where only one
 * connection has them, tasks are named `connectionId/taskId`. With `isSearched` the aggregate offers three search tools
 * instead (`search-tools.ts`).
 *
 * One failing upstream never fails the rest: lists name it in `_meta["slipway/failed"]`. Unknown names are -32602, in
 * search mode a tool result, which the model reads. A call that claims to continue another one is rejected if the
 * server is too old to recognize this, since it would run as a new call.
 */
import { withMember, withoutMeta } from '../protocol/json-edit.js';
import { isObject } from '../../platform/text/json.js';
import { quote } from '../../platform/text/quoted.js';
import type {
  CallerProfile,
  Channel,
  ListenFilter,
  Listening,
  ListenOptions,
  McpCall,
  McpReply,
  UpstreamListener,
} from '../protocol/channel.js';
import { members as membersOf, slice, splice } from '../protocol/json-text.js';
import { grantedTools } from '../client/tools/tool-choice.js';
import type { UpstreamHandle } from '../client/upstream-handle.js';
import { listChanges, listOf, mcpLists } from '../protocol/list-pages.js';
import { deadlineIn } from '../protocol/deadline.js';
import { UpstreamFailure } from '../protocol/mcp-errors.js';
import { LOG_LEVEL_KEY, rpcCode, type Era, type UpstreamIdentity } from '../protocol/protocol.js';
import { extrasOf, sharedProfile } from '../protocol/session.js';
import { qualifyUri, withQualifiedLinks, withQualifiedTask, type Separator } from './member-names.js';
import { errorReply, resultReply, toolFailureReply } from '../protocol/messages.js';
import { SearchTools } from './search-tools.js';
import { AggregateEvents, byConnection, MemberEvents, withUpdateOf } from './aggregate-events.js';
import { AggregateIdentity } from './aggregate-identity.js';
import { MEMBERS_MAX, MemberRequests, type AggregateSource } from './member-requests.js';
import { AggregateLists } from './aggregate-lists.js';

/** Limit of client sessions whose upstream sessions are tracked, so that they close together. */
const PROFILES_MAX = 10_000;

/** Code with which servers up to 2025-11-25 refuse a resource that they do not have. */
const RESOURCE_NOT_FOUND = -32002;

const FIND_URI_MS = 5_000;

export interface AggregateForm {
  separator: Separator;
  isSearched: boolean;
  /** The only tools that were granted, by the names of their servers; absent: everything. */
  tools?: readonly string[];
}

export class AggregateChannel implements Channel {
  private readonly gathering: MemberRequests;
  private readonly lists: AggregateLists;
  private readonly search: SearchTools;
  private readonly events: AggregateEvents;
  private readonly identity: AggregateIdentity;
  /** Upstream handles on which a client's session owns sessions, with their connections. */
  private readonly profiles = new Map<string, Map<UpstreamHandle, string>>();
  private readonly streams = new Map<string, MemberEvents>();

  constructor(
    private readonly source: AggregateSource,
    private readonly form: AggregateForm,
  ) {
    const onToolsChanged = () => this.events.schedule('notifications/tools/list_changed');
    this.gathering = new MemberRequests(source, onToolsChanged, form.tools);
    this.lists = new AggregateLists(source, this.gathering, form.separator);
    this.search = new SearchTools(source, this.gathering, this.lists);
    this.events = new AggregateEvents(source);
    this.identity = new AggregateIdentity(
      source,
      `The MCP servers connected in ${source.name}. ` +
        (form.isSearched
          ? 'Find a tool with search_tools, read its arguments with describe_tool, run it with call_tool.'
          : `A tool is named by its connection: connection${form.separator}tool.`),
    );
  }

  open(_timeoutMs: number, era?: Era): Promise<UpstreamIdentity> {
    return this.identity.read(era);
  }

  async request(call: McpCall): Promise<McpReply> {
    const { method, params } = call;
    const list = listOf(method);
    if (list) return list === mcpLists.tools && this.form.isSearched ? this.search.list() : this.lists.page(list, call);
    const parsedParams = JSON.parse(params ?? '{}') as {
      name?: unknown;
      uri?: unknown;
      taskId?: unknown;
      ref?: { name?: unknown; uri?: unknown };
    };
    switch (method) {
      case 'tools/call':
        return (
          (this.form.isSearched
            ? await this.search.call(call, (toolParams) => this.callTool(call, toolParams))
            : null) ?? this.callTool(call, params)
        );
      case 'prompts/get':
        return this.callName(call, 'prompt', parsedParams.name, (name) =>
          withMember(params ?? '{}', 'name', JSON.stringify(name)),
        );
      case 'resources/read':
        return this.callUri(call, parsedParams.uri, (uri) => withMember(params ?? '{}', 'uri', JSON.stringify(uri)));
      case 'completion/complete': {
        const ref = membersOf(params ?? '{}').get('ref');
        const inRef = (member: string) => (value: string) =>
          ref && params
            ? splice(params, ref, withMember(slice(params, ref), member, JSON.stringify(value)))
            : (params ?? '{}');
        return typeof parsedParams.ref?.uri === 'string'
          ? this.callUri(call, parsedParams.ref.uri, inRef('uri'))
          : this.callName(call, 'prompt', parsedParams.ref?.name, inRef('name'));
      }
      // Serves the skills extension (SEP-2640), and a subscription that its server rejects.
      case 'resources/subscribe':
      case 'skills/get':
      case 'resources/directory/read':
        // Some servers name a skill by other params.
        if (method === 'skills/get' && parsedParams.uri === undefined) return this.tryMembers(call);
        return this.callUri(call, parsedParams.uri, (uri) => withMember(params ?? '{}', 'uri', JSON.stringify(uri)));
      // In the tasks extension, a task id includes its connection.
      case 'tasks/get':
      case 'tasks/update':
      case 'tasks/cancel':
        return this.ofTask(call, parsedParams.taskId);
      default:
        return this.tryMembers(call);
    }
  }

  /**
   * Listens to list changes of all connections, resource updates of the connections in the filter, and log messages of those in
   * which the caller has its own sessions.
   */
  async listen(
    filter: ListenFilter,
    listener: UpstreamListener,
    { profile, era }: Pick<ListenOptions, 'profile' | 'era'>,
  ): Promise<Listening> {
    const { resourceSubscriptions = [], ...lists } = filter;
    const askedUris = await this.qualifiedUris(resourceSubscriptions, profile);
    const notify = (text: string, method: string) =>
      listChanges.has(method)
        ? this.events.schedule(method)
        : listener.onNotification(
            withUpdateOf(text, method, (uri) => askedUris.get(uri) ?? uri),
            method,
          );
    const memberEvents = new MemberEvents(this.source, notify, { profile, era });
    const key = profile?.key ?? '';
    if (profile && !profile.isShared) this.streams.set(key, memberEvents);
    const subscribed = byConnection([...askedUris.keys()]).map(([connectionId, uris]) =>
      memberEvents.follow(connectionId, uris),
    );
    const used = [...(this.profiles.get(key)?.values() ?? [])].map((connectionId) => memberEvents.follow(connectionId));
    const followedUris = (await Promise.all([...subscribed, ...used])).flat();
    const uris = followedUris.map((uri) => askedUris.get(uri) ?? uri);
    const stop = this.events.add(lists, listener);
    return {
      honoured: { ...lists, ...(uris.length > 0 && { resourceSubscriptions: uris }) },
      close: () => {
        stop();
        if (this.streams.get(key) === memberEvents) this.streams.delete(key);
        return memberEvents.close();
      },
    };
  }

  notify(profileKey: string, text: string): void {
    for (const handle of this.profiles.get(profileKey)?.keys() ?? []) handle.notify(profileKey, text);
  }

  async release(profileKey: string, forGood?: boolean): Promise<void> {
    const handles = [...(this.profiles.get(profileKey)?.keys() ?? [])];
    this.profiles.delete(profileKey);
    await Promise.all(handles.map((handle) => handle.release(profileKey, forGood)));
  }

  async close(): Promise<void> {
    this.events.close();
    await Promise.all([...this.profiles.keys()].map((key) => this.release(key)));
  }

  /** Calls a tool. In search mode, errors of the arguments are tool results, which reach the model. */
  private callTool(call: McpCall, params: string | undefined): Promise<McpReply> {
    const { name } = JSON.parse(params ?? '{}') as { name?: unknown };
    return this.callName(call, 'tool', name, (tool) => withMember(params ?? '{}', 'name', JSON.stringify(tool)));
  }

  private async callName(
    call: McpCall,
    noun: 'tool' | 'prompt',
    name: unknown,
    paramsFor: (name: string) => string,
  ): Promise<McpReply> {
    const kind = noun === 'tool' ? mcpLists.tools : mcpLists.prompts;
    const item = typeof name === 'string' ? await this.lists.find(kind, name, call) : null;
    if (!item) {
      const text = `Unknown ${noun}: ${quote(String(name))}. Names begin with a connection of ${this.source.name}.`;
      return this.form.isSearched && noun === 'tool' ? toolFailureReply(text) : errorReply(rpcCode.invalidParams, text);
    }
    const { connectionId, name: ownName } = item;
    return this.forward(connectionId, call, noun === 'tool' ? ownName : null, paramsFor(ownName));
  }

  /** Maps the aggregate's URIs to those that the client used. */
  private async qualifiedUris(uris: string[], profile?: CallerProfile): Promise<Map<string, string>> {
    const askedUris = new Map<string, string>();
    const timeLeft = deadlineIn(FIND_URI_MS);
    for (const uri of uris) {
      const item = await this.lists.findUri(uri, { timeoutMs: timeLeft(), profile });
      askedUris.set(item ? qualifyUri(item.connectionId, item.name) : uri, uri);
    }
    return askedUris;
  }

  private async callUri(call: McpCall, uri: unknown, paramsFor: (uri: string) => string): Promise<McpReply> {
    const item = typeof uri === 'string' ? await this.lists.findUri(uri, call) : null;
    if (!item) {
      if (typeof uri !== 'string') return errorReply(rpcCode.invalidParams, `${call.method} needs a uri`);
      const text = `Unknown resource: ${quote(uri, 200)}. Write connection://<connectionId>/ in front of a server's own URI.`;
      return errorReply(rpcCode.invalidParams, text);
    }
    const { connectionId, name: ownUri } = item;
    if (call.method === 'resources/subscribe' && !(await this.sendsUpdates(connectionId, call))) {
      // The namespace declares updates for all its servers. A resource of this one just never changes.
      return resultReply('{}', call.era);
    }
    // The files of a skill read by its own URI are named by their own URIs too: its digests cover these.
    const isOwn = uri === ownUri && call.method !== 'resources/read';
    return this.forward(connectionId, call, null, paramsFor(ownUri), (other) =>
      other === ownUri ? String(uri) : isOwn ? other : qualifyUri(connectionId, other),
    );
  }

  private async sendsUpdates(connectionId: string, { timeoutMs, era }: McpCall): Promise<boolean> {
    const handle = await this.source.handle(connectionId);
    const { resources } = (await handle.open(timeoutMs, era)).capabilities;
    return isObject(resources) && resources.subscribe === true;
  }

  private async ofTask(call: McpCall, taskId: unknown): Promise<McpReply> {
    const [, connectionId, ownId] = typeof taskId === 'string' ? (/^([^/]+)\/([^]+)$/.exec(taskId) ?? []) : [];
    const { members } = await this.source.members();
    if (connectionId === undefined || !members.some((member) => member.connectionId === connectionId)) {
      return errorReply(rpcCode.invalidParams, `Unknown task: ${quote(String(taskId))}`);
    }
    const params = withMember(call.params ?? '{}', 'taskId', JSON.stringify(ownId));
    return this.forward(connectionId, call, null, params);
  }

  /**
   * Calls one connection after another, newest first, until one does not reply that the method or the params are
   * unknown, which both mean that nothing ran.
   */
  private async tryMembers(call: McpCall): Promise<McpReply> {
    const timeLeft = deadlineIn(call.timeoutMs);
    let refusal: McpReply | null = null;
    const { members } = await this.source.members();
    for (const { connectionId } of members.filter(({ state }) => state === 'connected').slice(0, MEMBERS_MAX)) {
      try {
        const reply = await this.forward(connectionId, { ...call, timeoutMs: timeLeft() }, null, call.params);
        const code = reply.error?.code;
        if (code !== rpcCode.methodNotFound && code !== rpcCode.invalidParams && code !== RESOURCE_NOT_FOUND)
          return reply;
        if (code !== rpcCode.methodNotFound) refusal ??= reply;
      } catch (error) {
        this.source.faultOf(connectionId, error);
        if (error instanceof UpstreamFailure && error.outcomeUnknown) throw error;
      }
    }
    const text = `The connections of a namespace have no ${quote(call.method)} together`;
    return refusal ?? errorReply(rpcCode.methodNotFound, text);
  }

  private async forward(
    connectionId: string,
    call: McpCall,
    tool: string | null,
    params: string | undefined,
    qualify = (uri: string) => qualifyUri(connectionId, uri),
  ): Promise<McpReply> {
    const handle = await this.source.handle(connectionId);
    const { onNotification } = call;
    const isNews = isContinued(params) || params?.includes(LOG_LEVEL_KEY);
    const isLegacy = isNews && (await handle.open(call.timeoutMs, call.era)).era === 'legacy';
    // A server of an earlier revision ignores these members: it would run the call as a new one.
    if (isLegacy && isContinued(params)) {
      return errorReply(
        rpcCode.invalidParams,
        'This call does not wait for input: make it without requestState and inputResponses',
      );
    }
    const reply = await this.source.watch(handle, call, tool, async ({ timing, invocationId }) => {
      try {
        const profile = await this.profileFor(connectionId, handle, call);
        return await grantedTools(handle, this.form.tools).request({
          ...call,
          params: isLegacy && params ? withoutMeta(params, (name) => name === LOG_LEVEL_KEY) : params,
          timing,
          invocationId,
          profile,
          ...(onNotification && {
            onNotification: (text, method) =>
              onNotification(
                withUpdateOf(text, method, (uri) => qualifyUri(connectionId, uri)),
                method,
              ),
          }),
        });
      } finally {
        if (call.timing) Object.assign(call.timing, timing);
      }
    });
    return withQualifiedTask(withQualifiedLinks(reply, call.method, qualify), call.method, connectionId);
  }

  /**
   * Returns the profile of a call. A legacy upstream sends requests during a call, which only some callers can answer, and log messages by the level
   * of a session.
   */
  private async profileFor(
    connectionId: string,
    handle: UpstreamHandle,
    { profile, onRequest, timeoutMs, era: requestedEra }: McpCall,
  ): Promise<CallerProfile | undefined> {
    if (!profile) return undefined;
    const { era } = await handle.open(timeoutMs, requestedEra);
    if (!onRequest && profile.level === undefined && era === 'legacy') {
      return sharedProfile(era, extrasOf(profile.capabilities));
    }
    // A caller that may share a session and has no level has no session to release.
    if (profile.mayShare && profile.level === undefined) return profile;
    const handles = this.profiles.get(profile.key) ?? new Map<UpstreamHandle, string>();
    handles.set(handle, connectionId);
    // A Map iterates in insertion order: the client that called last is the last one to be released.
    this.profiles.delete(profile.key);
    this.profiles.set(profile.key, handles);
    const [oldest] = this.profiles.keys();
    if (this.profiles.size > PROFILES_MAX && oldest !== undefined) void this.release(oldest);
    const stream = era === 'legacy' ? this.streams.get(profile.key) : undefined;
    // Listens before the call, which can cause the first message or update. The call reports failures.
    await stream?.follow(connectionId).catch(() => undefined);
    return profile;
  }
}

/**
 * Returns true if a call claims to continue one that waits for client input. Input responses alone come with a new
 * call.
 */
function isContinued(params: string | undefined): boolean {
  if (!params?.includes('"requestState"') && !params?.includes('"inputResponses"')) return false;
  const members = membersOf(params);
  const answers = members.get('inputResponses');
  return members.has('requestState') || (answers !== undefined && !slice(params, answers).startsWith('{'));
}
