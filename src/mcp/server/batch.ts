import { someAtOnce } from '../../platform/limits/some-at-once.js';
import { isObject } from '../../platform/text/json.js';
import { answerLimit } from '../client/message-budget.js';
import type { RpcHead } from '../protocol/messages.js';
import { elements, slice } from '../protocol/json-text.js';
import { envelope, PARALLEL, rpcCode } from '../protocol/protocol.js';
import { errorText } from './mcp-responses.js';
import { type McpRequestContext, type McpResponseSink, silentSink } from './mcp-request.js';
import { invalid, type Fault } from './classify.js';

/** The only revision with batches. */
const BATCH_VERSION = '2025-03-26';

const BATCH_MAX = 100;

/** Returns the number of further messages; 0 for a body that is not a batch. */
export function furtherMessages(text: string): number {
  try {
    const body: unknown = JSON.parse(text);
    return Array.isArray(body) ? Math.max(0, body.length - 1) : 0;
  } catch {
    return 0;
  }
}

/** Returns the reason to reject a batch; null to accept it. */
export function batchFault(batch: readonly unknown[], { session, headers }: McpRequestContext): Fault | null {
  if ((session?.version ?? headers.version) !== BATCH_VERSION) {
    return invalid('Send one message per request: batches are not taken');
  }
  if (batch.length === 0) return invalid('The batch is empty');
  if (batch.length > BATCH_MAX) return invalid(`A batch holds ${BATCH_MAX} messages at most`);
  if (batch.some((message) => !isObject(message))) return invalid('Each message of a batch must be an object');
  const isModern = (batch as RpcHead[]).some(({ params }) => {
    const meta = isObject(params) ? params._meta : undefined;
    return isObject(meta) && envelope.version in meta;
  });
  return isModern ? invalid('Messages of MCP 2026-07-28 are sent one by one') : null;
}

/**
 * Responds with the array of responses, in the order of the messages. Responses above the size limit are replaced by
 * errors.
 */
export async function serveBatch(
  request: McpRequestContext,
  sink: McpResponseSink,
  serve: (request: McpRequestContext, sink: McpResponseSink) => Promise<void>,
): Promise<void> {
  const messages = elements(request.text).map((span) => slice(request.text, span));
  const answers = new Array<string | null>(messages.length).fill(null);
  let chars = 0;
  await someAtOnce(PARALLEL, messages.entries(), async ([i, text]) => {
    const reply = (_status: number, answer: string | null) => void (answers[i] = answer);
    // A JSON array carries only responses: no server requests, no progress.
    await serve({ ...request, text, acceptsStream: false }, { ...silentSink, reply });
    const answer = answers[i] ?? null;
    chars += answer?.length ?? 0;
    if (answer === null || chars <= answerLimit()) return;
    const { id = null } = JSON.parse(answer) as { id?: unknown };
    answers[i] = errorText(
      JSON.stringify(id),
      rpcCode.internalError,
      'The answers to this batch are too long together',
    );
  });
  const present = answers.filter((answer) => answer !== null);
  if (present.length === 0) sink.reply(202, null);
  else sink.reply(200, `[${present.join(',')}]`);
}
