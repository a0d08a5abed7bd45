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

/** Client side of one era of the protocol. A channel has one, selected by the era of the endpoint. */
export interface ProtocolAdapter {
  open(timeoutMs: number): Promise<UpstreamIdentity>;
  /**
   * Sends a request. @throws EraContradictedError when the endpoint does not match the remembered era, UpstreamFailure
   */
  request(call: McpCall, timeoutMs: number): Promise<McpReply>;
  listen(filter: ListenFilter, listener: UpstreamListener, options: ListenOptions): Promise<Listening>;
  /** Sends a notification in a caller profile's session in this process; absent for an era without sessions. */
  notify?(profileKey: string, text: string): void;
  /** Closes a caller profile's session in this process. Never rejects. */
  release(profileKey: string): Promise<void>;
  /** Closes all sessions. Never rejects. */
  close(forGood?: boolean): Promise<void>;
}

/** The upstream rejected a session as a server of the other era does. */
export class HandshakeRefusedError extends UpstreamError {
  /** @param isOtherEra the error code is one with which modern servers reject `initialize` */
  constructor(
    message: string,
    readonly isOtherEra: boolean,
  ) {
    super(message, { outcomeUnknown: false, failure: 'refused' });
  }
}

/** HTTP statuses with which an endpoint rejects a message of the other era. */
const OUT_OF_PLACE: ReadonlySet<number | null> = new Set([400, 404, 405]);

/** True when the endpoint did not process the message as MCP: another transport may be served there. */
export function isOutOfPlace(error: unknown): boolean {
  return error instanceof UpstreamError && OUT_OF_PLACE.has(error.status);
}

/** Address of the server that rejected a request, and the headers it was sent. */
interface Target {
  url: URL;
  headers: Record<string, string>;
}

/**
 * Message of a rejection with the sent credentials redacted: servers often repeat them, and the message is stored and
 * shown.
 */
export function refusalText(target: Target, words: string): string {
  return `${target.url.host} refused to open an MCP session: ${withoutSecrets(target, words).slice(0, 1_000)}`;
}

/** Length limit of a body that is searched for the server's message. */
const WORDS_BYTES_MAX = 16 * 1024;

/** Members in which APIs explain an error. */
const EXPLANATIONS = ['message', 'error_description', 'detail', 'error', 'title'];

/** The message in the text or JSON body of an error, without what looks like a secret; empty for other bodies. */
export function wordsOf(target: Target, contentType: string, body: string | null): string {
  if (body === null || body.length > WORDS_BYTES_MAX || !/json|text\/plain/i.test(contentType)) return '';
  let value: unknown = body;
  try {
    value = JSON.parse(body);
  } catch {
    // Plain text.
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

/** A server's message without the credentials it was sent; values of up to 3 characters are not redacted. */
function withoutSecrets({ url, headers }: Target, text: string): string {
  const secrets = [
    ...Object.values(headers).flatMap((value) => [value, value.slice(value.indexOf(' ') + 1)]),
    ...url.searchParams.values(),
  ];
  return secrets.filter(({ length }) => length > 3).reduce((rest, secret) => rest.replaceAll(secret, '…'), text);
}

/** {@link refusalText} as an error. */
export function refusal(target: Target, words: string): UpstreamError {
  return new UpstreamError(refusalText(target, words), { outcomeUnknown: false, failure: 'refused' });
}
