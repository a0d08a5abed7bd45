import { UpstreamError } from '../protocol/mcp-errors.js';

/** Address and headers of the server that refused. */
interface Target {
  url: URL;
  headers: Record<string, string>;
}

/**
 * Error text of a refusal with the sent credentials redacted: servers often repeat them, and the text is stored and
 * shown.
 */
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
