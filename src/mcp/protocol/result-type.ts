import type { McpReply } from './channel.js';
import { members, slice } from './json-text.js';
import { InputNeededError, UpstreamError } from './mcp-errors.js';

/** What the result of a modern upstream is: `complete` when it does not say, null for an error. */
export function resultTypeOf({ text, result, era }: McpReply): string | null {
  if (!result) return null;
  if (era === 'legacy' || !text.includes('"resultType"') || text[result[0]] !== '{') return 'complete';
  const span = members(text, result[0]).get('resultType');
  const type: unknown = span && JSON.parse(slice(text, span));
  return typeof type === 'string' ? type : 'complete';
}

/**
 * The reply, if it needs nothing more of whoever asked: for callers who cannot be asked back.
 *
 * @throws InputNeededError when the upstream asks for input, UpstreamError for a task or what MCP does not know
 */
export function completeOrRefuse(reply: McpReply): McpReply {
  const type = resultTypeOf(reply);
  if (type === null || type === 'complete') return reply;
  if (type === 'input_required') throw new InputNeededError();
  if (type === 'task') {
    throw new UpstreamError(
      'The MCP server answered with a task to be asked for later, which this way of calling does not do.',
    );
  }
  throw new UpstreamError(`The MCP server answered with a result of type "${type.slice(0, 40)}", which is not MCP.`);
}
