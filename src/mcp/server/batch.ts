import { isObject } from '../../platform/text/json.js';
import { elements, slice } from '../protocol/json-text.js';
import { envelope, rpcCode } from '../protocol/protocol.js';
import { errorText } from './mcp-responses.js';
import type { McpRequestContext, McpResponseSink } from './mcp-request.js';
import { invalid, type Fault } from './classify.js';

/** The only revision with batches. */
const BATCH_VERSION = '2025-03-26';

/** Messages in one batch. */
const BATCH_MAX = 100;

/** Answers to one batch, together: what does not fit is answered with an error. */
const ANSWERS_CHARS_MAX = 32 * 1024 * 1024;

/** Messages of one batch that are served at once. */
const AT_ONCE_MAX = 8;

/** Why a batch is not taken; null when it is. */
export function batchFault(batch: readonly unknown[], { session, headers }: McpRequestContext): Fault | null {
  if ((session?.version ?? headers.version) !== BATCH_VERSION) {
    return invalid('Send one message per request: batches are not taken');
  }
  if (batch.length === 0) return invalid('The batch is empty');
  if (batch.length > BATCH_MAX) return invalid(`A batch holds ${BATCH_MAX} messages at most`);
  if (batch.some((message) => !isObject(message))) return invalid('Each message of a batch must be an object');
  return batch.some(hasEnvelope) ? invalid('Messages of MCP 2026-07-28 are sent one by one') : null;
}

function hasEnvelope(message: unknown): boolean {
  const params = isObject(message) ? message.params : undefined;
  const meta = isObject(params) ? params._meta : undefined;
  return isObject(meta) && envelope.version in meta;
}

/** Serves the messages of a batch independently, and answers with the list of their answers in the order they came. */
export async function serveBatch(
  request: McpRequestContext,
  sink: McpResponseSink,
  serve: (request: McpRequestContext, sink: McpResponseSink) => Promise<void>,
): Promise<void> {
  const texts = elements(request.text).map((span) => slice(request.text, span));
  const answers = new Array<string | null>(texts.length).fill(null);
  let chars = 0;
  let next = 0;
  const work = async () => {
    for (let i = next++; i < texts.length; i = next++) {
      const own = new BatchSink();
      // Nothing but answers fits into a list, so nobody can be asked and no progress is told.
      await serve({ ...request, text: texts[i] ?? '', acceptsStream: false }, own);
      chars += own.text?.length ?? 0;
      answers[i] = own.text !== null && chars > ANSWERS_CHARS_MAX ? tooMuch(own.text) : own.text;
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE_MAX, texts.length) }, work));
  const given = answers.filter((answer) => answer !== null);
  if (given.length === 0) sink.reply(202, null);
  else sink.reply(200, `[${given.join(',')}]`);
}

/** Keeps one answer. */
class BatchSink implements McpResponseSink {
  text: string | null = null;

  reply(_status: number, text: string | null): void {
    this.text = text;
  }

  event(): void {}

  open(): void {}

  end(): void {}
}

function tooMuch(answer: string): string {
  const { id = null } = JSON.parse(answer) as { id?: unknown };
  return errorText(JSON.stringify(id), rpcCode.internalError, 'The answers to this batch are too long together');
}
