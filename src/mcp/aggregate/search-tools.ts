import { schemaFaults } from '../../platform/json-schema/schema-faults.js';
import { isObject } from '../../platform/text/json.js';
import { jsonIn } from '../../platform/text/json-bounds.js';
import { quote } from '../../platform/text/quoted.js';
import type { McpCall, McpReply } from '../protocol/channel.js';
import { members as membersOf, slice, type Span } from '../protocol/json-text.js';
import { LIST_ITEMS_MAX, mcpLists, type ListItem } from '../protocol/list-pages.js';

import { resultReply, toolFailureReply, toolReply } from '../protocol/messages.js';
import { rankTools, readTools } from './tool-ranking.js';
import type { MemberCall, MemberRequests, MemberFault, AggregateSource } from './member-requests.js';
import { repairedItem } from '../protocol/item-repair.js';
import { rewriteMembers, withMember } from '../protocol/json-edit.js';
import { leftOut, type AggregateLists } from './aggregate-lists.js';

const FOUND_DEFAULT = 10;
const FOUND_MAX = 50;

/** Search results cut longer descriptions; `describe_tool` returns the whole one. */
const SHOWN_CHARS_MAX = 300;

const nameSchema = { type: 'string', description: 'The name that search_tools gave, such as "my-first__echo".' };

const definitions = [
  {
    name: 'search_tools',
    title: 'Search tools',
    description:
      'Find tools of all connected MCP servers by purpose. Returns names and short descriptions, best first. ' +
      'Then read the arguments of one with describe_tool and run it with call_tool.',
    inputSchema: {
      type: 'object',
      properties: {
        query: { type: 'string', description: 'What the tool should do, in a few words, such as "create issue".' },
        limit: { type: 'integer', minimum: 1, maximum: FOUND_MAX, default: FOUND_DEFAULT },
      },
      required: ['query'],
    },
    annotations: { readOnlyHint: true, openWorldHint: false },
  },
  {
    name: 'describe_tool',
    title: 'Describe a tool',
    description: 'The whole description of one tool, with the schema of its arguments.',
    inputSchema: { type: 'object', properties: { name: nameSchema }, required: ['name'] },
    annotations: { readOnlyHint: true, openWorldHint: false },
  },
  {
    name: 'call_tool',
    title: 'Call a tool',
    description: 'Run a tool that search_tools found. The result is the tool’s own.',
    inputSchema: {
      type: 'object',
      properties: {
        name: nameSchema,
        arguments: { type: 'object', description: 'The arguments, as describe_tool shows them.' },
      },
      required: ['name'],
    },
    annotations: { openWorldHint: true },
  },
];

const CALL_FORM =
  'call_tool takes {"name": "my-first__echo", "arguments": {"text": "hello"}}: a name that search_tools gave, and the ' +
  'arguments as an object.';

const LIST_MS = 5_000;

const LIST = JSON.stringify({ tools: definitions });

/** Search mode: three tools find and call all others, so that definitions do not fill a model's context. */
export class SearchTools {
  constructor(
    private readonly source: AggregateSource,
    private readonly gathering: MemberRequests,
    private readonly lists: AggregateLists,
  ) {}

  list(): McpReply {
    return resultReply(LIST);
  }

  /**
   * Handles a call of one of the three tools; null for other tools. `call_tool` forwards to `call` with the params of
   * the called tool.
   */
  async call({ params, ...rest }: McpCall, call: (params: string) => Promise<McpReply>): Promise<McpReply | null> {
    const { name, arguments: values } = JSON.parse(params ?? '{}') as { name?: unknown; arguments?: unknown };
    const args = isObject(values) ? values : {};
    switch (name) {
      case 'search_tools':
        return this.search(args, rest);
      case 'describe_tool':
        return this.describe(args, rest);
      case 'call_tool': {
        const inner = membersOf(params ?? '').get('arguments');
        const read = await this.readCall(inner ? slice(params ?? '', inner) : '{}', rest);
        if (typeof read !== 'string') return read;
        const meta = membersOf(params ?? '').get('_meta');
        return call(meta ? withMember(read, '_meta', slice(params ?? '', meta)) : read);
      }
      default:
        return null;
    }
  }

  /** Repairs a model's usual mistakes; otherwise returns the error of `call_tool`. */
  private async readCall(text: string, call: MemberCall): Promise<string | McpReply> {
    const spans = text.startsWith('{') ? membersOf(text) : new Map<string, Span>();
    const [name, sent] = ['name', 'arguments'].map((member) => {
      const span = spans.get(member);
      return span && slice(text, span);
    });
    const unknown = [...spans.keys()].filter((member) => member !== 'name' && member !== 'arguments');
    const args = sent?.startsWith('"') ? objectText(JSON.parse(sent) as string) : sent;
    if (!name?.startsWith('"') || unknown.length > 0 || (args !== undefined && !args?.startsWith('{'))) {
      const reason = unknown.length > 0 ? ` It has no ${unknown.map((member) => quote(member)).join(', ')}.` : '';
      return toolFailureReply(`The tool was not called. ${CALL_FORM}${reason}`);
    }
    const tool = await this.find(JSON.parse(name) as string, { ...call, timeoutMs: Math.min(call.timeoutMs, LIST_MS) });
    if (tool && 'item' in tool && !isForModels(tool.item)) return unknownTool(JSON.parse(name));
    const schema = tool && 'item' in tool ? schemaOf(tool.item) : undefined;
    const typedArgs = withTypes(args ?? '{}', schema);
    const faults = isObject(schema) ? await schemaFaults(this.source.name, schema, JSON.parse(typedArgs)) : [];
    // Formats are left to the server: validators differ.
    const wrong = faults.filter(({ message }) => !message.startsWith('must match format'));
    if (wrong.length === 0) return `{"name":${name},"arguments":${typedArgs}}`;
    const reasons = wrong.map(({ path, message }) => [path.join('.') || 'arguments', message].join(' ')).join('; ');
    return toolFailureReply(`The tool was not called: ${reasons}. describe_tool shows its arguments.`);
  }

  private async search(args: Record<string, unknown>, call: MemberCall): Promise<McpReply> {
    const { query, limit = FOUND_DEFAULT } = args;
    if (typeof query !== 'string')
      return toolFailureReply('search_tools needs a query: what the tool should do, in a few words.');
    if (!Number.isInteger(limit) || (limit as number) < 1 || (limit as number) > FOUND_MAX) {
      return toolFailureReply(`limit must be a whole number from 1 to ${FOUND_MAX}.`);
    }
    const { tools, failed, notes } = await this.listAll(call);
    await readTools(tools);
    const ranked = rankTools(tools, query);
    const answer = {
      tools: ranked.slice(0, limit as number).map(({ name, connectionId, tool }) => {
        const { description } = JSON.parse(tool.text) as { description?: unknown };
        const text = typeof description === 'string' ? description : '';
        const short = text.length > SHOWN_CHARS_MAX ? `${text.slice(0, SHOWN_CHARS_MAX).toWellFormed()}…` : text;
        return { name, connectionId, description: short };
      }),
      found: ranked.length,
      searched: tools.length,
      ...(failed.length > 0 && { failed }),
      ...(notes.length > 0 && { notes }),
    };
    return toolReply(JSON.stringify(answer));
  }

  private async describe({ name }: Record<string, unknown>, call: MemberCall): Promise<McpReply> {
    const listed = typeof name === 'string' ? await this.find(name, call) : null;
    if (!listed || ('item' in listed && !isForModels(listed.item))) return unknownTool(name);
    if ('fault' in listed) return toolFailureReply(listed.fault);
    const tool = listed.item;
    const usable = repairedItem(mcpLists.tools, tool);
    const { text } = 'reason' in usable ? tool : usable;
    return toolReply(`{"tool":${withMember(text, 'name', JSON.stringify(name))}}`);
  }

  /** Returns the listed tool of this name, or why its connection could not list its tools; null for unknown names. */
  private async find(name: string, call: MemberCall): Promise<{ item: ListItem } | { fault: string } | null> {
    const read = await this.lists.find(mcpLists.tools, name, call);
    const member =
      read && (await this.source.members()).members.find((candidate) => candidate.connectionId === read.connectionId);
    if (!read || !member) return null;
    const [list] = await this.gathering.gather([member], mcpLists.tools, { itemsMax: 1, ...call });
    if (!list || !('items' in list))
      return { fault: list?.fault.message ?? 'The tools of the MCP server could not be listed in time.' };
    const item = list.items.find((tool) => tool.name === read.name);
    return item ? { item } : null;
  }

  /** Lists all tools; those of connected connections come first. */
  private async listAll(
    call: MemberCall,
  ): Promise<{
    tools: { name: string; connectionId: string; tool: ListItem }[];
    failed: MemberFault[];
    notes: string[];
  }> {
    const all = await this.source.members();
    const names = await this.lists.names();
    const order = [...all.members].sort((a, b) => Number(b.state === 'connected') - Number(a.state === 'connected'));
    const gathered = await this.gathering.gather(order, mcpLists.tools, { itemsMax: LIST_ITEMS_MAX, ...call });
    const tools = gathered.flatMap((list) => {
      if (!('items' in list)) return [];
      const { connectionId } = list.member;
      const listedNames = names.namesOf(connectionId, list.items);
      return list.items.flatMap((tool) => {
        const name = listedNames.get(tool.name);
        return name === undefined || !isForModels(tool) ? [] : [{ name, connectionId, tool }];
      });
    });
    const failed = gathered.flatMap((list) => ('fault' in list ? [list.fault] : []));
    const unasked = order.length - gathered.length;
    const notes = [
      ...(unasked > 0
        ? [`${unasked} connections were not searched: there are too many tools, or they took too long.`]
        : []),
      ...(all.isCut ? [leftOut(all)] : []),
    ];
    return { tools, failed, notes };
  }
}

/**
 * Returns false for a tool that its server hides from models: one for the pages of MCP Apps, in its current or earlier
 * form.
 */
function isForModels({ text }: ListItem): boolean {
  if (!text.includes('visibility')) return true;
  const { _meta: meta } = JSON.parse(text) as { _meta?: unknown };
  if (!isObject(meta)) return true;
  const { visibility } = isObject(meta.ui) ? meta.ui : { visibility: meta['ui/visibility'] };
  if (Array.isArray(visibility) || typeof visibility === 'string') return [visibility].flat().includes('model');
  return meta['openai/visibility'] !== 'private';
}

function schemaOf(item: ListItem): unknown {
  const usable = repairedItem(mcpLists.tools, item);
  return 'reason' in usable ? undefined : (JSON.parse(usable.text) as { inputSchema?: unknown }).inputSchema;
}

function objectText(text: string): string | null {
  return isObject(jsonIn(text)) ? text.trim() : null;
}

/** Converts values to the types of the schema: models often write numbers and objects as strings. */
function withTypes(text: string, schema: unknown): string {
  const properties = isObject(schema) && isObject(schema.properties) ? schema.properties : {};
  return rewriteMembers(text, (name, value) => {
    const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
    const types = isObject(property) && property.type !== undefined ? [property.type].flat() : [];
    if (!value.startsWith('"') || types.length === 0 || types.includes('string')) return value;
    const inner = (JSON.parse(value) as string).trim();
    const typed = jsonIn(inner);
    const type = Array.isArray(typed) ? 'array' : typed === null ? 'null' : typeof typed;
    const isWanted = types.includes(type) || (Number.isInteger(typed) && types.includes('integer'));
    return isWanted ? inner : value;
  });
}

function unknownTool(name: unknown): McpReply {
  return toolFailureReply(`There is no tool ${quote(String(name))}: search_tools finds the names there are.`);
}
