import { discard, type Egress, isObject, MockModelError, parseBounded, readWithin } from '../../extension.js';

interface ModelDialect {
  url: URL;
  headers: Record<string, string>;
  body(system: string, prompt: string): string;
  /** Returns the string of a response; null without one. */
  text(answer: unknown): string | null;
}

interface ModelEndpoint {
  /** A base URL such as `https://api.openai.com/v1`, or the complete URL. */
  url: string;
  apiKey: string | null;
  model: string;
}

const ANSWER_BYTES_MAX = 1024 * 1024;

export class ModelClient {
  private readonly dialect: ModelDialect;

  constructor(
    private readonly egress: Egress,
    endpoint: ModelEndpoint,
  ) {
    // Anthropic's Messages API for its host or a path that ends in `/messages`; else OpenAI's Chat Completions.
    const url = new URL(endpoint.url);
    const isAnthropic = /(^|\.)anthropic\.com$/.test(url.hostname) || /\/messages\/?$/.test(url.pathname);
    this.dialect = isAnthropic ? anthropic(url, endpoint) : openAi(url, endpoint);
  }

  /** Requests a completion, without following redirects, which would receive the key. @throws MockModelError */
  async complete(system: string, prompt: string, signal: AbortSignal): Promise<string> {
    const answer = await this.post(this.dialect.body(system, prompt), signal);
    const text = this.dialect.text(answer);
    if (text === null) throw new MockModelError('The language model responded without text.');
    return text;
  }

  private async post(body: string, signal: AbortSignal): Promise<unknown> {
    const { url, headers } = this.dialect;
    try {
      const sent = { 'content-type': 'application/json', accept: 'application/json', ...headers };
      const answer = await this.egress.request(this.egress.check(url), { method: 'POST', headers: sent, body, signal });
      if (answer.statusCode !== 200) {
        discard(answer.body);
        throw new MockModelError(`The language model answered with status ${answer.statusCode}.`);
      }
      const bytes = await readWithin(answer.body, ANSWER_BYTES_MAX);
      if (!bytes) throw new MockModelError('The language model answered with more than 1 MB.');
      return parseBounded(bytes.toString('utf8'));
    } catch (error) {
      throw toFailure(error, signal);
    }
  }
}

const ANSWER_TOKENS_MAX = 2_000;

function toFailure(error: unknown, signal: AbortSignal): Error {
  if (error instanceof MockModelError) return error;
  if (signal.aborted) return new MockModelError('The language model did not answer in time.');
  if (error instanceof SyntaxError)
    return new MockModelError('The language model answered with something that is not JSON.');
  return new MockModelError('The language model could not be reached.');
}

/** Returns the dialect of https://docs.anthropic.com/en/api/messages. */
function anthropic(url: URL, { apiKey, model }: ModelEndpoint): ModelDialect {
  return {
    url: ending(url, /\/messages\/?$/, /\/v1\/?$/.test(url.pathname) ? '/messages' : '/v1/messages'),
    headers: { 'anthropic-version': '2023-06-01', ...(apiKey === null ? {} : { 'x-api-key': apiKey }) },
    body: (system, prompt) =>
      JSON.stringify({ model, max_tokens: ANSWER_TOKENS_MAX, system, messages: [{ role: 'user', content: prompt }] }),
    text: (answer) => {
      const blocks = isObject(answer) && Array.isArray(answer.content) ? (answer.content as unknown[]) : [];
      const parts = blocks.flatMap((block) => (isObject(block) && typeof block.text === 'string' ? [block.text] : []));
      return parts.length === 0 ? null : parts.join('');
    },
  };
}

/** Returns the dialect of https://platform.openai.com/docs/api-reference/chat, which most other vendors serve too. */
function openAi(url: URL, { apiKey, model }: ModelEndpoint): ModelDialect {
  return {
    url: ending(url, /\/chat\/completions\/?$/, '/chat/completions'),
    headers: apiKey === null ? {} : { authorization: `Bearer ${apiKey}` },
    body: (system, prompt) =>
      JSON.stringify({
        model,
        max_tokens: ANSWER_TOKENS_MAX,
        messages: [
          { role: 'system', content: system },
          { role: 'user', content: prompt },
        ],
      }),
    text: (answer) => {
      const [choice] = isObject(answer) && Array.isArray(answer.choices) ? (answer.choices as unknown[]) : [];
      const message = isObject(choice) && isObject(choice.message) ? choice.message : {};
      return typeof message.content === 'string' ? message.content : null;
    },
  };
}

function ending(url: URL, end: RegExp, added: string): URL {
  if (end.test(url.pathname)) return url;
  const fullUrl = new URL(url);
  fullUrl.pathname = url.pathname.replace(/\/$/, '') + added;
  return fullUrl;
}
