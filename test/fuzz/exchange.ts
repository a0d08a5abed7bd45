import http from 'node:http';
import net from 'node:net';
import { text } from 'node:stream/consumers';

/** A request as it goes out. */
export interface Sent {
  method: string;
  /** Path and query, sent as written. */
  target: string;
  headers: Record<string, string>;
  body?: Buffer | string;
}

export interface Got {
  status: number;
  headers: http.IncomingHttpHeaders;
  body: Buffer;
}

/** Time for a whole answer, longer than every limit of time of the service under test: no answer is endless. */
const ANSWER_MS_MAX = 60_000;
/** Bytes of a refused body that the service discards, so that its answer can be read. */
const DISCARDED_BYTES = 65_536;

const agent = new http.Agent({ keepAlive: true, maxSockets: 16 });

/**
 * Sends a request and reads the answer; of an endless stream the first event.
 *
 * @returns null when the service closed the connection in the middle of a large body
 */
export async function send(url: string, sent: Sent): Promise<Got | null> {
  try {
    return await sendOnce(url, sent, agent);
  } catch (error) {
    const { code, name } = error as NodeJS.ErrnoException;
    if (name === 'AbortError')
      throw new Error(`No whole answer in ${ANSWER_MS_MAX} ms: ${described(sent)}`, { cause: error });
    if (code !== 'ECONNRESET' && code !== 'EPIPE') throw error;
    // An idle connection that the service closed meanwhile, or one that it closed after a refusal.
    if (Buffer.byteLength(sent.body ?? '') > DISCARDED_BYTES) return null;
    return await sendOnce(url, sent, false);
  }
}

function sendOnce(url: string, sent: Sent, through: http.Agent | false): Promise<Got> {
  const { method, target, headers, body } = sent;
  return new Promise((resolve, reject) => {
    const options = { method, path: target, headers, agent: through, signal: AbortSignal.timeout(ANSWER_MS_MAX) };
    const request = http.request(url, options, (response) => {
      const chunks: Buffer[] = [];
      const finish = () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) });
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk);
        const isStream = response.headers['content-type']?.startsWith('text/event-stream');
        if (!isStream || method === 'POST' || !chunk.includes('\n\n')) return;
        finish();
        response.destroy();
      });
      response.on('end', finish);
      response.on('error', reject);
    });
    request.on('error', reject);
    if (body !== undefined && method !== 'POST' && method !== 'PUT') {
      request.setHeader('content-length', Buffer.byteLength(body));
    }
    request.end(body);
  });
}

/** Sends bytes over a connection of its own and reads all that comes back. */
export async function sendBytes(url: string, bytes: Buffer): Promise<string> {
  const socket = net.connect(Number(new URL(url).port), '127.0.0.1');
  socket.on('error', () => socket.destroy());
  socket.end(bytes);
  return text(socket).catch(() => '');
}

/** The request as a command, cut where it is long. */
export function described({ method, target, headers, body = '' }: Sent): string {
  const shown = Object.entries(headers)
    .filter(([name]) => name !== 'authorization')
    .map(([name, value]) => `${name}: ${value}`);
  const bytes = Buffer.from(body);
  const content = JSON.stringify(bytes.subarray(0, 1_500).toString('latin1'));
  return [`${method} ${target}`, ...shown, bytes.length > 0 ? `${bytes.length} bytes: ${content}` : ''].join('\n    ');
}
