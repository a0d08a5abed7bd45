import { isObject } from '../../../../platform/text/json.js';

/** How a language model is asked over HTTP. */
export interface ModelDialect {
  url: URL;
  headers: Record<string, string>;
  /** The body that asks `prompt`, under the rules of `system`. */
  body(system: string, prompt: string): string;
  /** The text of an answer; null when it holds none. */
  text(answer: unknown): string | null;
}

/** Where a language model is, and how it is called there. */
export interface ModelEndpoint {
  /** A base such as `https://api.openai.com/v1`, or the whole address. */
  url: string;
  apiKey: string | null;
  model: string;
}

/** What a model may write at most; an answer of a tool is rarely longer. */
const ANSWER_TOKENS_MAX = 2_000;

/** Anthropic's messages where the address says so, by its host or its end; else OpenAI's chat completions. */
export function dialectOf(endpoint: ModelEndpoint): ModelDialect {
  const url = new URL(endpoint.url);
  const isAnthropic = /(^|\.)anthropic\.com$/.test(url.hostname) || /\/messages\/?$/.test(url.pathname);
  return isAnthropic ? anthropic(url, endpoint) : openAi(url, endpoint);
}

/** https://docs.anthropic.com/en/api/messages */
function anthropic(url: URL, { apiKey, model }: ModelEndpoint): ModelDialect {
  return {
    url: ending(url, /\/messages\/?$/, /\/v1\/?$/.test(url.pathname) ? '/messages' : '/v1/messages'),
    headers: { 'anthropic-version': '2023-06-01', ...(apiKey === null ? {} : { 'x-api-key': apiKey }) },
    body: (system, prompt) =>
      JSON.stringify({
        model,
        max_tokens: ANSWER_TOKENS_MAX,
        system,
        messages: [{ role: 'user', content: prompt }],
      }),
    text: (answer) => {
      const blocks = isObject(answer) && Array.isArray(answer.content) ? (answer.content as unknown[]) : [];
      const texts = blocks.flatMap((block) => (isObject(block) && typeof block.text === 'string' ? [block.text] : []));
      return texts.length === 0 ? null : texts.join('');
    },
  };
}

/** https://platform.openai.com/docs/api-reference/chat, which most others speak too. */
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

/** The address with its last part, given or added. */
function ending(url: URL, end: RegExp, added: string): URL {
  if (end.test(url.pathname)) return url;
  const whole = new URL(url);
  whole.pathname = url.pathname.replace(/\/$/, '') + added;
  return whole;
}
