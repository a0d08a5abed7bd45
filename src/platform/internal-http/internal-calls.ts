import { EventEmitter } from 'node:events';
import { Agent, request } from 'undici';
import { LineReader } from '../text/line-reader.js';
import { INTERNAL_HEADER, type InternalSignatures } from './internal-signatures.js';

/** What is not answered at all by then comes from no process of ours. */
const CONNECT_MS = 5_000;

/** A line holds one MCP message, up to 16 MB, escaped once more. */
const LINE_CHARS_MAX = 64 * 1024 * 1024;

/** The answer of another process, as it comes. */
export interface InternalAnswer {
  /** 200; 404 when the other process does not hold what it was asked for. */
  status: number;
  /** Hears every line; empty ones are signs of life. Resolves when there are no more. Called once. @throws what the socket or the listener says */
  lines(onLine: (line: string) => void): Promise<void>;
}

/**
 * Requests to other processes of this service, signed. They go to addresses the operator gave (`ADVERTISE_URL`), which are
 * private ones as a rule, so they do not pass the wall that keeps tenants' requests away from those.
 */
export class InternalCalls {
  private readonly agent = new Agent({ connect: { timeout: CONNECT_MS }, headersTimeout: 0, bodyTimeout: 0 });

  constructor(private readonly signatures: InternalSignatures) {}

  /**
   * @param head what is asked, sent as JSON on a line of its own
   * @param rest follows it as it is
   * @param whenLeft is handed what breaks the request off
   * @throws what the socket says
   */
  async post(
    base: string,
    path: string,
    head: object,
    rest: string,
    whenLeft: (leave: () => void) => void,
  ): Promise<InternalAnswer> {
    const body = `${JSON.stringify(head)}\n${rest}`;
    const left = new EventEmitter();
    whenLeft(() => left.emit('abort'));
    const answer = await request(`${base}${path}`, {
      method: 'POST',
      dispatcher: this.agent,
      headers: { 'content-type': 'application/octet-stream', [INTERNAL_HEADER]: this.signatures.sign(path, body) },
      body,
      signal: left,
    });
    return {
      status: answer.statusCode,
      lines: async (onLine) => {
        const reader = new LineReader(LINE_CHARS_MAX, 'refused', onLine);
        for await (const chunk of answer.body) reader.push(chunk as Buffer);
      },
    };
  }
}

/** Whether a request that failed may have reached the other process. */
export function wasSent(error: unknown): boolean {
  const { code = '' } = error as { code?: string };
  return !/^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$/.test(code);
}
