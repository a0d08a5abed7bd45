/**
 * Tools of legacy servers that run only as tasks (`execution.taskSupport: required`, MCP 2025-11-25), called like any
 * other tool.
 *
 * A call of such a tool is sent with `task: {ttl}`; the response names a task, whose result is awaited with
 * `tasks/result`. When the caller disconnects or the call times out, `tasks/cancel` follows. Lists show the tools as
 * `optional`, since callers need not know.
 *
 * Which tools require a task is learned from every forwarded `tools/list`. An unknown tool causes another listing, at
 * most every 5 s; if that fails, the tool is called without a task, and the server reports the error.
 */
import { Logger } from '@nestjs/common';
import { isObject } from '../../platform/text/json.js';
import type { McpCall, McpReply } from '../protocol/channel.js';
import { deadlineIn } from '../protocol/deadline.js';
import { CALL_MS_MAX } from './silence-timer.js';
import { memberText, withMember } from '../protocol/json-edit.js';
import { LIST_ITEMS_MAX, mcpLists, readList } from '../protocol/list-pages.js';
import { resultOf, withList } from '../protocol/messages.js';
import type { UpstreamIdentity } from '../protocol/protocol.js';

const TASK_TTL_MS = CALL_MS_MAX;

const TOOLS_TIMEOUT_MS = 10_000;
/** Maximum length of a name; MCP allows 128 characters. */
const NAME_CHARS_MAX = 512;
const READ_EVERY_MS = 5_000;

const CANCEL_MS = 2_000;

type Send = (call: McpCall, timeoutMs: number) => Promise<McpReply>;

export function offersTasks({ capabilities: { tasks } }: UpstreamIdentity): boolean {
  if (tasks === undefined) return false;
  const requests = isObject(tasks) ? tasks.requests : undefined;
  return isObject(requests) && isObject(requests.tools) && isObject(requests.tools.call);
}

export class LegacyTasks {
  private readonly logger = new Logger('mcp');
  private readonly required = new Map<string, boolean>();
  private readAt = -Infinity;
  private reading: Promise<void> | null = null;

  /** @throws UpstreamFailure */
  async send(call: McpCall, timeoutMs: number, send: Send): Promise<McpReply> {
    if (call.method === 'tools/list') return this.recordSupport(await send(call, timeoutMs));
    return call.method === 'tools/call' ? this.call(call, timeoutMs, send) : send(call, timeoutMs);
  }

  /** Records the tools that support tasks, and makes a required `taskSupport` optional. */
  private recordSupport(reply: McpReply): McpReply {
    return withList(reply, 'tools', (items) => {
      const tools = items.map((item) => this.learnOne(item));
      return tools.some(({ isRequired }) => isRequired) ? tools.map(({ tool }) => tool) : null;
    });
  }

  private async call(call: McpCall, timeoutMs: number, send: Send): Promise<McpReply> {
    const timeLeft = deadlineIn(timeoutMs);
    const params = call.params ?? '{}';
    if (memberText(params, 'task') !== undefined) return send(call, timeoutMs);
    const name = memberText(params, 'name');
    if (!name?.startsWith('"') || !(await this.isRequired(JSON.parse(name) as string, timeLeft, send))) {
      return send(call, timeLeft());
    }
    const reply = await send({ ...call, params: withMember(params, 'task', `{"ttl":${TASK_TTL_MS}}`) }, timeLeft());
    const result = reply.text.includes('"taskId"') ? resultOf(reply) : undefined;
    const task = isObject(result) ? result.task : undefined;
    if (!isObject(task) || typeof task.taskId !== 'string') return reply;
    const about = JSON.stringify({ taskId: task.taskId });
    const ttlMs = typeof task.ttl === 'number' ? Math.min(task.ttl, TASK_TTL_MS) : TASK_TTL_MS;
    // A caller that waits as long as messages arrive waits as long as the task lives, since a task can be silent.
    const waitMs = call.onNotification ? ttlMs : timeLeft();
    try {
      return await send({ ...call, method: 'tasks/result', params: about, timeoutMs: waitMs }, waitMs);
    } catch (error) {
      const cancel = { method: 'tasks/cancel', params: about, timeoutMs: CANCEL_MS };
      send(cancel, CANCEL_MS).catch((failed: unknown) =>
        this.logger.debug({ msg: 'a task could not be cancelled', err: failed }),
      );
      throw error;
    }
  }

  private async isRequired(name: string, timeLeft: () => number, send: Send): Promise<boolean> {
    if (!this.required.has(name) && (this.reading || Date.now() - this.readAt > READ_EVERY_MS)) {
      this.readAt = Date.now();
      const request = async (call: McpCall) => this.recordSupport(await send(call, call.timeoutMs));
      this.reading ??= readList({ request }, mcpLists.tools, Math.min(timeLeft(), TOOLS_TIMEOUT_MS))
        .then(() => undefined)
        .catch((error: unknown) =>
          this.logger.debug({ msg: 'the tools of a server with tasks could not be listed', err: error }),
        )
        .finally(() => (this.reading = null));
      await this.reading;
    }
    return this.required.get(name) ?? false;
  }

  private learnOne(tool: string): { tool: string; isRequired: boolean } {
    if (!tool.startsWith('{')) return { tool, isRequired: false };
    const name = memberText(tool, 'name');
    const execution = memberText(tool, 'execution');
    const isRequired = execution?.startsWith('{') === true && memberText(execution, 'taskSupport') === '"required"';
    if (name?.startsWith('"') && name.length <= NAME_CHARS_MAX) {
      if (this.required.size >= LIST_ITEMS_MAX) this.required.clear();
      this.required.set(JSON.parse(name) as string, isRequired);
    }
    if (!isRequired) return { tool, isRequired };
    return {
      tool: withMember(tool, 'execution', withMember(execution ?? '{}', 'taskSupport', '"optional"')),
      isRequired,
    };
  }
}
