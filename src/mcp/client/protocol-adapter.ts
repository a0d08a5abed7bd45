import type {
  Listening,
  ListenFilter,
  ListenOptions,
  McpCall,
  McpReply,
  UpstreamListener,
} from '../protocol/channel.js';
import { UpstreamError } from '../protocol/mcp-errors.js';
import { isObject } from '../../platform/text/json.js';
import { redactText } from '../../platform/telemetry/redact-payload.js';
import type { UpstreamIdentity } from '../protocol/protocol.js';

/** The protocol of an endpoint. A channel has one adapter, selected by the era of the endpoint. */
export interface ProtocolAdapter {
  open(timeoutMs: number): Promise<UpstreamIdentity>;
  /** @throws EraContradictedError when the endpoint does not match the remembered era, UpstreamFailure */
  request(call: McpCall, timeoutMs: number): Promise<McpReply>;
  listen(filter: ListenFilter, listener: UpstreamListener, options: ListenOptions): Promise<Listening>;
  /** Absent for an era without sessions. */
  notify?(profileKey: string, text: string): void;
  /** Closes only the session in this process. The promise never rejects. */
  release(profileKey: string): Promise<void>;
  /** Closes all sessions. Never rejects. */
  close(forGood?: boolean): Promise<void>;
}

/** The upstream rejected a session as a server of the other era does. */
export class HandshakeRefusedError extends UpstreamError {
  /** @param isOtherEra modern servers reject `initialize` with this code */
  constructor(
    message: string,
    readonly isOtherEra: boolean,
  ) {
    super(message, { outcomeUnknown: false, failure: 'refused' });
  }
}

/** HTTP statuses with which an endpoint rejects a message of the other era. */
const OUT_OF_PLACE: ReadonlySet<number | null> = new Set([400, 404, 405]);

/** Returns true when the endpoint did not process the message as MCP: another transport may be served there. */
export function isOutOfPlace(error: unknown): boolean {
  return error instanceof UpstreamError && OUT_OF_PLACE.has(error.status);
}

interface Target {
  url: URL;
  headers: Record<string, string>;
}

/** Redacts the sent credentials: servers often repeat them, and the message is stored and shown. */
export function refusalText(target: Target, words: string): string {
  return `${target.url.host} refused to open an MCP session: ${withoutSecrets(target, words).slice(0, 1_000)}`;
}

const WORDS_BYTES_MAX = 16 * 1024;

/** Members in which APIs explain an error. */
const EXPLANATIONS = ['message', 'error_description', 'detail', 'error', 'title'];

/** Returns the message in a body, with possible secrets redacted; empty for bodies other than text and JSON. */
export function wordsOf(target: Target, contentType: string, body: string | null): string {
  if (body === null || body.length > WORDS_BYTES_MAX || !/json|text\/plain/i.test(contentType)) return '';
  let value: unknown = body;
  try {
    value = JSON.parse(body);
  } catch {
    // The body is plain text.
  }
  return redactText(withoutSecrets(target, explanation(value) ?? body))
    .replace(/\s+/g, ' ')
    .trim();
}

function explanation(value: unknown): string | null {
  if (typeof value === 'string') return value;
  if (!isObject(value)) return null;
  return EXPLANATIONS.reduce<string | null>((text, member) => text ?? explanation(value[member]), null);
}

/** Redacts secrets of a target; values of up to 3 characters remain. */
function withoutSecrets({ url, headers }: Target, text: string): string {
  const secrets = [
    ...Object.values(headers).flatMap((value) => [value, value.slice(value.indexOf(' ') + 1)]),
    ...url.searchParams.values(),
  ];
  return secrets.filter(({ length }) => length > 3).reduce((rest, secret) => rest.replaceAll(secret, '…'), text);
}

export function refusal(target: Target, words: string): UpstreamError {
  return new UpstreamError(refusalText(target, words), { outcomeUnknown: false, failure: 'refused' });
}
