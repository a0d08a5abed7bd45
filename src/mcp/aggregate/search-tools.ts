import { isObject } from '../../platform/text/json.js';
import { quote } from '../../platform/text/quoted.js';
import type { McpCall, McpReply } from '../protocol/channel.js';
import { members as membersOf, slice } from '../protocol/json-text.js';
import { LIST_ITEMS_MAX, mcpLists, type ListItem } from '../protocol/list-pages.js';

import { resultReply, toolFailureReply, toolReply } from '../protocol/messages.js';
import { rankTools, readTools } from './tool-ranking.js';
import type { MemberCall, MemberRequests, MemberFault, AggregateSource } from './member-requests.js';
import { repairedItem } from './item-repair.js';
import { withMember } from '../protocol/json-edit.js';
import { leftOut, type AggregateLists } from './aggregate-lists.js';

const FOUND_DEFAULT = 10;
const FOUND_MAX = 50;

/** Length limit of descriptions in search results; `describe_tool` returns all. */
const SHOWN_CHARS_MAX = 300;

const nameSchema = { type: 'string', description: 'The name that search_tools gave, such as "my-first__echo".' };

/** Tools of search mode. */
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

const LIST = JSON.stringify({ tools: definitions });

/** Search mode: three tools that find and call all others, so that definitions do not fill a model's context. */
export class SearchTools {
  constructor(
    private readonly source: AggregateSource,
    private readonly gathering: MemberRequests,
    private readonly lists: AggregateLists,
  ) {}

  /** `tools/list` result with the three tools. */
  list(): McpReply {
    return resultReply(LIST);
  }

  /**
   * Answers a call of one of the three tools; null for other tools. `call_tool` forwards to `call` with the params of
   * the called tool.
   */
  async call({ params, ...rest }: McpCall, call: (params: string) => Promise<McpReply>): Promise<McpReply | null> {
    const spans = membersOf(params ?? '{}');
    const { name, arguments: values } = JSON.parse(params ?? '{}') as { name?: unknown; arguments?: unknown };
    const args = isObject(values) ? values : {};
    switch (name) {
      case 'search_tools':
        return this.search(args, rest);
      case 'describe_tool':
        return this.describe(args, rest);
      case 'call_tool': {
        if (typeof args.name !== 'string')
          return toolFailureReply('call_tool needs the name of a tool: search_tools finds it.');
        const span = spans.get('arguments');
        const inner = span && membersOf(params ?? '', span[0]).get('arguments');
        const meta = spans.get('_meta');
        return call(
          `{"name":${JSON.stringify(args.name)},"arguments":${inner ? slice(params ?? '', inner) : '{}'}` +
            `${meta ? `,"_meta":${slice(params ?? '', meta)}` : ''}}`,
        );
      }
      default:
        return null;
    }
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
    const read = typeof name === 'string' ? await this.lists.find(mcpLists.tools, name, call) : null;
    const member =
      read && (await this.source.members()).members.find((candidate) => candidate.connectionId === read.connectionId);
    if (!read || !member) return unknownTool(name);
    const [list] = await this.gathering.gather([member], mcpLists.tools, { itemsMax: 1, ...call });
    if (!list || !('items' in list))
      return toolFailureReply(list?.fault.message ?? 'The tools of the MCP server could not be listed in time.');
    const tool = list.items.find((item) => item.name === read.name);
    if (!tool) return unknownTool(name);
    const usable = repairedItem(mcpLists.tools, tool);
    const { text } = 'reason' in usable ? tool : usable;
    return toolReply(`{"tool":${withMember(text, 'name', JSON.stringify(name))}}`);
  }

  /** All tools, of connected connections first, within the limits. */
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
        return name === undefined ? [] : [{ name, connectionId, tool }];
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

function unknownTool(name: unknown): McpReply {
  return toolFailureReply(`There is no tool ${quote(String(name))}: search_tools finds the names there are.`);
}
