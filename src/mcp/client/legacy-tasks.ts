import { Logger } from '@nestjs/common';
import { isObject } from '../../platform/text/json.js';
import type { McpCall, McpReply } from '../protocol/channel.js';
import { deadlineIn } from '../protocol/deadline.js';
import { memberText, withMember, withoutMembers } from '../protocol/json-edit.js';
import { elements, members, slice, splice } from '../protocol/json-text.js';
import { listPages, mcpLists } from '../protocol/list-pages.js';
import { resultOf } from '../protocol/messages.js';
import type { UpstreamIdentity } from '../protocol/protocol.js';

/** How long a task's result is to be kept: as long as any call may run. */
const TASK_TTL_MS = 15 * 60_000;

/** Reading all tools, to learn which of them run as tasks only; again for an unknown one, at most every 5 s. */
const TOOLS_TIMEOUT_MS = 10_000;
const TOOL_PAGES_MAX = 64;
const TOOLS_MAX = 10_000;
/** A longer name is not remembered; MCP has names of up to 128 characters. */
const NAME_CHARS_MAX = 512;
const READ_EVERY_MS = 5_000;

const CANCEL_MS = 2_000;

type Send = (call: McpCall, timeoutMs: number) => Promise<McpReply>;

/** Whether a server runs tool calls as tasks. */
export function offersTasks({ capabilities: { tasks } }: UpstreamIdentity): boolean {
  if (tasks === undefined) return false;
  const requests = isObject(tasks) ? tasks.requests : undefined;
  return isObject(requests) && isObject(requests.tools) && isObject(requests.tools.call);
}

/**
 * Tools that legacy servers run as tasks alone (`taskSupport: required`): we make the task and wait for its result, so that
 * every caller calls them like any other. A task would otherwise belong to an upstream session that callers share.
 */
export class LegacyTasks {
  private readonly logger = new Logger('mcp');
  private readonly required = new Map<string, boolean>();
  private readAt = -Infinity;
  private reading: Promise<void> | null = null;

  /** Sends a request to a server that {@link offersTasks}. @throws UpstreamFailure */
  async send(call: McpCall, timeoutMs: number, send: Send): Promise<McpReply> {
    if (call.method === 'tools/list') return this.learn(await send(call, timeoutMs));
    return call.method === 'tools/call' ? this.call(call, timeoutMs, send) : send(call, timeoutMs);
  }

  /** A `tools/list` reply in which no tool demands to be run as a task. */
  private learn(reply: McpReply): McpReply {
    const { text, result } = reply;
    const list = result && text[result[0]] === '{' ? members(text, result[0]).get('tools') : undefined;
    if (!list || text[list[0]] !== '[') return reply;
    const tools = elements(text, list[0]).map((span) => this.learnOne(slice(text, span)));
    if (!tools.some(({ isRequired }) => isRequired)) return reply;
    const kept = splice(text, list, `[${tools.map(({ tool }) => tool).join(',')}]`);
    const parts = members(kept);
    return { ...reply, text: kept, id: parts.get('id') ?? null, result: parts.get('result') ?? null };
  }

  /** Calls a tool, as a task if it must be one. */
  private async call(call: McpCall, timeoutMs: number, send: Send): Promise<McpReply> {
    const left = deadlineIn(timeoutMs);
    const params = call.params ?? '{}';
    const name = memberText(params, 'name');
    if (!name?.startsWith('"') || !(await this.isRequired(JSON.parse(name) as string, left, send))) {
      return send(call, left());
    }
    const made = await send({ ...call, params: withMember(params, 'task', `{"ttl":${TASK_TTL_MS}}`) }, left());
    const taskId = taskIdIn(made);
    if (taskId === null) return made;
    const about = JSON.stringify({ taskId });
    try {
      return await send({ ...call, method: 'tasks/result', params: about }, left());
    } catch (error) {
      // Nobody waits for it any more, whatever the server still says.
      const cancel = { method: 'tasks/cancel', params: about, timeoutMs: CANCEL_MS };
      send(cancel, CANCEL_MS).catch((failed: unknown) =>
        this.logger.debug({ msg: 'a task could not be cancelled', err: failed }),
      );
      throw error;
    }
  }

  private async isRequired(name: string, left: () => number, send: Send): Promise<boolean> {
    if (!this.required.has(name) && (this.reading || Date.now() - this.readAt > READ_EVERY_MS)) {
      this.reading ??= this.read(Math.min(left(), TOOLS_TIMEOUT_MS), send)
        // Then the call itself says what is wrong.
        .catch((error: unknown) =>
          this.logger.debug({ msg: 'the tools of a server with tasks were not read', err: error }),
        )
        .finally(() => (this.reading = null));
      await this.reading;
    }
    return this.required.get(name) ?? false;
  }

  private async read(timeoutMs: number, send: Send): Promise<void> {
    this.readAt = Date.now();
    const request = async (call: McpCall) => this.learn(await send(call, call.timeoutMs));
    const pages = listPages({ request }, mcpLists.tools, timeoutMs);
    let read = 0;
    while (read < TOOL_PAGES_MAX && !(await pages.next()).done) read += 1;
  }

  private learnOne(tool: string): { tool: string; isRequired: boolean } {
    if (!tool.startsWith('{')) return { tool, isRequired: false };
    const name = memberText(tool, 'name');
    const execution = memberText(tool, 'execution');
    const isRequired = execution?.startsWith('{') === true && memberText(execution, 'taskSupport') === '"required"';
    if (name?.startsWith('"') && name.length <= NAME_CHARS_MAX) {
      if (this.required.size >= TOOLS_MAX) this.required.clear();
      this.required.set(JSON.parse(name) as string, isRequired);
    }
    return { tool: isRequired ? withoutMembers(tool, (member) => member === 'execution') : tool, isRequired };
  }
}

/** The id of the task a call was made into; null when it was not. */
function taskIdIn(reply: McpReply): string | null {
  if (!reply.text.includes('"taskId"')) return null;
  const result = resultOf(reply);
  const task = isObject(result) ? result.task : undefined;
  return isObject(task) && typeof task.taskId === 'string' ? task.taskId : null;
}
