import { Injectable } from '@nestjs/common';
import { isObject } from '../../../platform/text/json.js';
import type { CallOrigin, McpCall, McpReply } from '../../protocol/channel.js';
import { memberText, withMember } from '../../protocol/json-edit.js';
import { uniqueMembers } from '../../protocol/json-text.js';
import { errorReply, resultOf, resultReply } from '../../protocol/messages.js';
import { rpcCode } from '../../protocol/protocol.js';
import { calledTool } from './tool-choice.js';

/** A connection, or a server at its run endpoint. */
export interface HookedTarget {
  kind: 'connection' | 'server';
  /** Id of its row. */
  id: string;
  /** `namespace/connectionId`, or the qualified name of the server. */
  name: string;
}

/** A `tools/call` of a client, or of the service itself. */
export interface HookedCall {
  target: HookedTarget;
  /** Name of the tool at the target, without the prefix of a namespace endpoint. */
  tool: string;
  arguments: Record<string, unknown>;
  /** `account` is the id of the account that calls. Null for calls of the service itself. */
  caller: CallOrigin | null;
}

/** Runs hooks around every tool call. Both methods may throw, which rejects the call. */
export interface CallHookRunner {
  /** @returns the arguments to send; null for those of the call */
  beforeCall(call: HookedCall): Promise<Record<string, unknown> | null>;
  /** @returns the result for the caller; null for that of the server */
  afterCall(call: HookedCall, result: Record<string, unknown>): Promise<Record<string, unknown> | null>;
}

@Injectable()
export class CallHooks {
  /** Null without hooks. */
  runner: CallHookRunner | null = null;
}

/**
 * Changes `call.params` to the params that are sent.
 *
 * @throws what a hook throws
 */
export async function sendWithHooks(
  call: McpCall,
  target: HookedTarget,
  runner: CallHookRunner,
  send: (call: McpCall, after: (reply: McpReply) => Promise<McpReply>) => Promise<McpReply>,
): Promise<McpReply> {
  const text = call.params ?? '{}';
  const tool = calledTool(text);
  const argumentsText = memberText(text, 'arguments') ?? '{}';
  const args: unknown = JSON.parse(argumentsText);
  // A server might read the other of two arguments with one name.
  if (tool === null || !isObject(args) || typeof uniqueMembers(argumentsText) === 'string') {
    return errorReply(
      rpcCode.invalidParams,
      'The call needs one name and one object of arguments, without repeated members',
    );
  }
  const hooked = { target, tool, arguments: args, caller: call.origin ?? null };
  const replaced = await runner.beforeCall(hooked);
  if (replaced) {
    call.params = withMember(text, 'arguments', JSON.stringify(replaced));
    hooked.arguments = replaced;
  }
  return send(call, async (reply) => {
    const result = resultOf(reply);
    const answer = isObject(result) ? await runner.afterCall(hooked, result) : null;
    return answer ? { ...resultReply(JSON.stringify(answer), reply.era), session: reply.session } : reply;
  });
}
