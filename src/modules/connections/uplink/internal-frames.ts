import type { ListenFilter } from '../../../mcp/protocol/channel.js';
import type { UpstreamIdentity } from '../../../mcp/protocol/protocol.js';
import type { WiredFailure } from '../../../mcp/protocol/wired-failure.js';

/**
 * What one process asks of the one that holds a tunnel. What is text of somebody else, the params of a request or the
 * answer to a question, follows on the lines after it.
 */
export type InternalAsk =
  | { ask: 'open'; timeoutMs: number }
  | {
      ask: 'request';
      timeoutMs: number;
      method: string;
      hasParams: boolean;
      wantsNotifications: boolean;
      /** Who can be asked in the middle of it; null when nobody can. */
      profileKey: string | null;
    }
  | { ask: 'listen'; timeoutMs: number; filter: ListenFilter }
  | { ask: 'answer'; question: string };

/** One line of the answer. `text` is a message of the local server, untouched. */
export type InternalLine =
  | { line: 'hello'; hello: UpstreamIdentity }
  | { line: 'notification'; method: string; text: string }
  /** Answered by an {@link InternalAsk} of its own, which names it. */
  | { line: 'question'; question: string; method: string; params: string | undefined }
  | { line: 'reply'; text: string }
  | { line: 'listening'; honoured: ListenFilter }
  | { line: 'end' }
  | { line: 'failure'; failure: WiredFailure };
