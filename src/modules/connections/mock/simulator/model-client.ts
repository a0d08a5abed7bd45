import type { Egress } from '../../../../platform/egress/egress.js';
import { discard, readWithin } from '../../../../platform/egress/follow.js';
import { dialectOf, type ModelDialect, type ModelEndpoint } from './model-dialects.js';

/** What is read of one answer, wrapping included. */
const ANSWER_BYTES_MAX = 1024 * 1024;

/** The model gave no answer; the message is a sentence without names of hosts and keys. */
export class ModelFailure extends Error {}

/** Asks a language model. */
export class ModelClient {
  private readonly dialect: ModelDialect;

  constructor(
    private readonly egress: Egress,
    endpoint: ModelEndpoint,
  ) {
    this.dialect = dialectOf(endpoint);
  }

  /** What the model writes. Redirects are not followed: they would take the key along. @throws ModelFailure */
  async ask(system: string, prompt: string, signal: AbortSignal): Promise<string> {
    const answer = await this.post(this.dialect.body(system, prompt), signal);
    const text = this.dialect.text(answer);
    if (text === null) throw new ModelFailure('The language model answered without a text.');
    return text;
  }

  private async post(body: string, signal: AbortSignal): Promise<unknown> {
    const { url, headers } = this.dialect;
    try {
      const own = { 'content-type': 'application/json', accept: 'application/json', ...headers };
      const answer = await this.egress.request(this.egress.check(url), { method: 'POST', headers: own, body, signal });
      if (answer.statusCode !== 200) {
        discard(answer.body);
        throw new ModelFailure(`The language model answered with status ${answer.statusCode}.`);
      }
      const bytes = await readWithin(answer.body, ANSWER_BYTES_MAX);
      if (!bytes) throw new ModelFailure('The language model answered with more than 1 MB.');
      return JSON.parse(bytes.toString('utf8')) as unknown;
    } catch (error) {
      throw toFailure(error, signal);
    }
  }
}

function toFailure(error: unknown, signal: AbortSignal): Error {
  if (error instanceof ModelFailure) return error;
  if (signal.aborted) return new ModelFailure('The language model did not answer in time.');
  if (error instanceof SyntaxError)
    return new ModelFailure('The language model answered with something that is no JSON.');
  return new ModelFailure('The language model could not be reached.');
}
