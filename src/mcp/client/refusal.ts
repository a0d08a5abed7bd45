import { UpstreamError } from '../protocol/mcp-errors.js';

/** Who refused, and what it was sent. */
interface Target {
  url: URL;
  headers: Record<string, string>;
}

/** Servers like to repeat the credential they refuse, but this message is stored and shown. */
export function refusalText({ url, headers }: Target, words: string): string {
  const secrets = Object.values(headers)
    .flatMap((value) => [value, value.slice(value.indexOf(' ') + 1)])
    .filter(Boolean);
  const message = secrets.reduce((text, secret) => text.replaceAll(secret, '…'), words);
  return `${url.host} refused to open an MCP session: ${message.slice(0, 200)}`;
}

/** {@link refusalText} as an error. */
export function refusal(target: Target, words: string): UpstreamError {
  return new UpstreamError(refusalText(target, words));
}
