import type { McpCall } from '../protocol/channel.js';
import { members, slice } from '../protocol/json-text.js';
import { UpstreamError } from '../protocol/mcp-errors.js';
import { answerText } from '../protocol/messages.js';
import { rpcCode } from '../protocol/protocol.js';

/** What a server may ask its client during one call; each is answered by a request of its own. */
const QUESTIONS_MAX = 100;

/** What is passed on to a caller who can be asked; everything else is for a client to refuse. */
const ASKABLE: ReadonlySet<string> = new Set(['roots/list', 'sampling/createMessage', 'elicitation/create']);

/** What an upstream asks its client during one call. */
export class UpstreamRequestResponder {
  private asked = 0;
  private open = 0;
  private answeredAt = -Infinity;

  /**
   * @param answer sends an answer, a JSON-RPC message, to the upstream
   * @param host for sentences
   */
  constructor(
    private readonly answer: (text: string) => void,
    private readonly host: string,
    private readonly ask?: McpCall['onRequest'],
  ) {}

  /** Answers a request of the upstream, or has it answered. @throws UpstreamError beyond 100 of them */
  take(text: string, method: string): void {
    this.asked += 1;
    if (this.asked > QUESTIONS_MAX) {
      throw new UpstreamError(`${this.host} asked its client more than ${QUESTIONS_MAX} things during one call.`);
    }
    const parts = members(text);
    const idAt = parts.get('id');
    const id = idAt ? slice(text, idAt) : 'null';
    if (!this.ask || !ASKABLE.has(method)) return this.answer(ownAnswer(id, method));
    const params = parts.get('params');
    this.open += 1;
    this.ask(method, params && slice(text, params))
      .catch(() => ({ error: { code: rpcCode.internalError, message: 'The client could not be asked' } }))
      .then((answer) => {
        this.open -= 1;
        this.answeredAt = performance.now();
        this.answer(answerText(id, answer));
      })
      // `answer` only hands over; what becomes of it there is told there.
      .catch(() => undefined);
  }

  /** True while the caller is being asked, and for `graceMs` more, in which the upstream goes on with the answer. */
  isHolding(graceMs: number): boolean {
    return this.open > 0 || performance.now() - this.answeredAt < graceMs;
  }
}

/** What we answer by ourselves: we are there, and know nobody who could be asked. `id` is JSON text. */
function ownAnswer(id: string, method: string): string {
  if (method === 'ping') return answerText(id, { result: '{}' });
  return answerText(id, {
    error: { code: rpcCode.methodNotFound, message: `This client does not answer ${method}` },
  });
}
