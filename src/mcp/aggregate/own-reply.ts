import type { McpReply } from '../protocol/channel.js';
import type { Span } from '../protocol/json-text.js';

const BEFORE_ID = '{"jsonrpc":"2.0","id":';
const HEAD = `${BEFORE_ID}0,"result":`;
const ID: Span = [BEFORE_ID.length, BEFORE_ID.length + 1];

/** An answer we give ourselves, in the place of an upstream. @param result JSON text */
export function resultReply(result: string): McpReply {
  const text = `${HEAD}${result}}`;
  return { text, id: ID, result: [HEAD.length, text.length - 1], error: null, era: 'legacy' };
}

/** An error we answer ourselves, in the place of an upstream. */
export function errorReply(code: number, message: string): McpReply {
  const error = { code, message };
  const text = JSON.stringify({ jsonrpc: '2.0', id: 0, error });
  return { text, id: ID, result: null, error, era: 'legacy' };
}

/** The result of a tool of ours: what programs read, and the same as text for models. @param structured JSON text */
export function toolReply(structured: string, isError = false): McpReply {
  const content = JSON.stringify([{ type: 'text', text: structured }]);
  return resultReply(`{"content":${content},"structuredContent":${structured}${isError ? ',"isError":true' : ''}}`);
}

/** A tool of ours that did not work: what happened and what to do, for a model. */
export function toolFailure(message: string): McpReply {
  return resultReply(JSON.stringify({ content: [{ type: 'text', text: message }], isError: true }));
}
