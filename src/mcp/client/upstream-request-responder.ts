/**
 * Requests that an upstream sends to its client during one call.
 *
 * `roots/list`, `sampling/createMessage` and `elicitation/create` go to the caller, if it can answer. `ping` is handled
 * here; every other method gets -32601. If the caller cannot be reached, the upstream gets an error, so that it does
 * not wait.
 */
import type { McpCall } from '../protocol/channel.js';
import { members, slice } from '../protocol/json-text.js';
import { answerText, errorAnswer, unansweredRequest } from '../protocol/messages.js';

const FORWARDED: ReadonlySet<string> = new Set(['roots/list', 'sampling/createMessage', 'elicitation/create']);

export class UpstreamRequestResponder {
  private open = 0;
  private answeredAt = -Infinity;

  /** @param answer sends a response, a JSON-RPC message, to the upstream */
  constructor(
    private readonly answer: (text: string) => void,
    readonly forward?: McpCall['onRequest'],
  ) {}

  /** @param forward replaces that of the call */
  handleRequest(text: string, method: string, forward = this.forward): void {
    const parts = members(text);
    const idAt = parts.get('id');
    const id = idAt ? slice(text, idAt) : 'null';
    if (!forward || !FORWARDED.has(method)) {
      return this.answer(answerText(id, method === 'ping' ? { result: '{}' } : unansweredRequest(method)));
    }
    const params = parts.get('params');
    this.open += 1;
    forward(method, params && slice(text, params))
      .catch(() => errorAnswer('The client could not be reached'))
      .then((answer) => {
        this.open -= 1;
        this.answeredAt = performance.now();
        this.answer(answerText(id, answer));
      })
      .catch(() => undefined);
  }

  /**
   * Returns true while the caller has a pending request, and for `graceMs` after it, in which the upstream continues.
   */
  isHolding(graceMs: number): boolean {
    return this.open > 0 || performance.now() - this.answeredAt < graceMs;
  }
}
