/**
 * Tasks of 2025-11-25 between a legacy client and a legacy server.
 *
 * A task belongs to the account and the endpoint by which it was started. The client's id is sealed for both and
 * contains the upstream's id and session, so any process can use it. `tasks/list` reads the newest ids of the account
 * from the table `mcp_tasks` and fetches each from the upstream, 8 at a time, because a shared upstream session would
 * list everybody's tasks.
 *
 * For the id of another account, or a changed one, the error is -32602 "Task not found". Tasks that the upstream no
 * longer knows are left out of the list.
 */
import { Injectable } from '@nestjs/common';
import { Tuning } from '../../../config/tuning.js';
import { someAtOnce } from '../../../platform/limits/some-at-once.js';
import { isObject } from '../../../platform/text/json.js';
import { Vault, VaultError } from '../../../platform/vault/vault.js';
import { offersTasks } from '../../client/legacy-tasks.js';
import { CALL_MS_MAX } from '../../client/silence-timer.js';
import type { Channel, McpReply } from '../../protocol/channel.js';
import { memberText, withMember, withoutMembers } from '../../protocol/json-edit.js';
import { slice } from '../../protocol/json-text.js';
import { resultOf } from '../../protocol/messages.js';
import { PARALLEL, rpcCode } from '../../protocol/protocol.js';
import { hopError, replyError, resultText, withOwnError, withResult } from '../mcp-responses.js';
import type { McpRequest } from '../mcp-request.js';
import { UpstreamCalls, type UpstreamRequestOptions } from '../upstream-calls.js';
import { McpTasksRepository } from './mcp-task.repository.js';

const GET_TIMEOUT_MS = 10_000;

/** Time for which a task without a ttl is listed, and the maximum for others. */
const LISTED_MS = 24 * 60 * 60_000;
const LISTED_MS_MAX = 7 * LISTED_MS;

/** `_meta` name of the task to which a message belongs. */
const RELATED = 'io.modelcontextprotocol/related-task';

@Injectable()
export class TaskRelay {
  constructor(
    private readonly vault: Vault,
    private readonly mcpTasksRepository: McpTasksRepository,
    private readonly upstreamCalls: UpstreamCalls,
    private readonly tuning: Tuning,
  ) {}

  async isOffered(channel: Channel): Promise<boolean> {
    const identity = await channel.open(this.tuning.upstreamCallTimeoutMs, 'legacy');
    return identity.era === 'legacy' && offersTasks(identity);
  }

  /** Registers a task. The reply has the client's id of the task. */
  async registerTask(incoming: McpRequest, reply: McpReply): Promise<string> {
    const result = resultOf(reply);
    const task = isObject(result) ? result.task : undefined;
    if (!isObject(task) || typeof task.taskId !== 'string') return withOwnError(reply, incoming.id, ownError(reply));
    const owner = ownerOf(incoming);
    const id = this.vault.seal(JSON.stringify([task.taskId, reply.session ?? '']), owner);
    const lifeMs = typeof task.ttl === 'number' ? Math.min(Math.max(task.ttl, 0), LISTED_MS_MAX) : LISTED_MS;
    await this.mcpTasksRepository.add(owner, id, lifeMs);
    return withResult(reply, incoming.id, (text) =>
      withMember(text, 'task', withId(memberText(text, 'task') ?? '{}', id)),
    );
  }

  /**
   * @param responder handles requests of the upstream; null for a client that handles none
   * @throws UpstreamFailure
   */
  async serve(
    incoming: McpRequest,
    responder: Pick<UpstreamRequestOptions, 'profile' | 'onRequest'> | null,
  ): Promise<void> {
    const { method, params, paramsText = '{}', id, sink } = incoming;
    const taskId = isObject(params) ? params.taskId : undefined;
    const task = typeof taskId === 'string' ? this.opened(taskId, ownerOf(incoming)) : null;
    if (typeof taskId !== 'string' || !task) {
      return replyError(
        incoming,
        rpcCode.invalidParams,
        'Task not found: no task with this id was started here by this account',
      );
    }
    const isResult = method === 'tasks/result';
    const onRequest = responder?.onRequest;
    const reply = await this.upstreamCalls.send(incoming, {
      params: withId(paramsText, task.taskId),
      session: task.session,
      era: 'legacy',
      accepts: (name) => name !== 'notifications/tasks/status',
      // The result comes when the task has finished, which can be silent for longer than a call.
      ...(isResult && { timeoutMs: CALL_MS_MAX }),
      ...(isResult && responder),
      ...(isResult &&
        onRequest && {
          onRequest: (name: string, text: string | undefined) => onRequest(name, text && withRelated(text, taskId)),
        }),
    });
    if (reply.error) return sink.reply(200, withOwnError(reply, id, ownError(reply)));
    sink.reply(
      200,
      withResult(reply, id, (text) => (isResult ? withRelated(text, taskId) : withId(text, taskId))),
    );
  }

  /** Lists the newest tasks of the caller that the upstream still has. @throws UpstreamFailure */
  async list(incoming: McpRequest): Promise<void> {
    const { channel, id, sink } = incoming;
    const owner = ownerOf(incoming);
    const sealedIds = await this.mcpTasksRepository.list(owner);
    const listed: string[] = [];
    await someAtOnce(PARALLEL, sealedIds.entries(), async ([at, sealedId]) => {
      const task = this.opened(sealedId, owner);
      if (!task) return;
      const about = { params: JSON.stringify({ taskId: task.taskId }), session: task.session };
      const call = { method: 'tasks/get', ...about, era: 'legacy', timeoutMs: GET_TIMEOUT_MS } as const;
      const { text, result } = await channel.request(call);
      if (result) listed[at] = withId(slice(text, result), sealedId);
    });
    sink.reply(200, resultText(id, `{"tasks":[${listed.filter((text) => text !== undefined).join(',')}]}`));
  }

  /** Opens a sealed id. Its session is that in which the task was started; empty if sessions have no names. */
  private opened(id: string, owner: string): { taskId: string; session: string } | null {
    try {
      const [taskId, session] = JSON.parse(this.vault.open(id, owner)) as [string, string];
      return { taskId, session };
    } catch (error) {
      if (error instanceof VaultError) return null;
      throw error;
    }
  }
}

/**
 * Returns true for a tool call that is to run as a task. Its client expects another result than that of the tool, and would fail after
 * the tool has run.
 */
export function wantsTask({ method, params }: McpRequest): boolean {
  return method === 'tools/call' && isObject(params) && params.task !== undefined;
}

export function withoutTask(incoming: McpRequest): McpRequest {
  const { task: _task, ...params } = incoming.params as Record<string, unknown>;
  const paramsText = withoutMembers(incoming.paramsText ?? '{}', (name) => name === 'task');
  return { ...incoming, params, paramsText };
}

function ownerOf({ request: { account, target } }: McpRequest): string {
  return `task of ${account} ${target}`;
}

function ownError({ error }: McpReply) {
  return error && hopError(error);
}

/** Replaces the task id; both arguments are JSON text. */
function withId(object: string, taskId: string): string {
  return object.startsWith('{') ? withMember(object, 'taskId', JSON.stringify(taskId)) : object;
}

function withRelated(object: string, taskId: string): string {
  const meta = object.startsWith('{') ? memberText(object, '_meta') : undefined;
  const related = meta?.startsWith('{') ? memberText(meta, RELATED) : undefined;
  if (meta === undefined || !related?.startsWith('{')) return object;
  return withMember(object, '_meta', withMember(meta, RELATED, withId(related, taskId)));
}
