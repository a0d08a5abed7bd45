import type { IncomingMessage } from 'node:http';
import { InvalidInputError, BodyTooLargeError } from '../errors/domain-error.js';

/**
 * Reads a whole request body as text, for routes served ahead of Express. A body that somebody read before is an error
 * at once: its end would never come.
 *
 * @throws BodyTooLargeError past `bytesMax`, before more is read; InvalidInputError for a compressed body or one that
 * breaks off
 */
export function readBody(request: IncomingMessage, bytesMax: number): Promise<string> {
  const encoding = request.headers['content-encoding'];
  if (encoding !== undefined && encoding !== 'identity') {
    return Promise.reject(
      new InvalidInputError(`Send the body as it is: the encoding "${encoding}" is not taken here`),
    );
  }
  if (request.readableEnded) return Promise.reject(new Error('The body was read before'));
  if (Number(request.headers['content-length'] ?? 0) > bytesMax) return Promise.reject(new BodyTooLargeError(bytesMax));
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > bytesMax) {
        request.pause();
        reject(new BodyTooLargeError(bytesMax));
      } else chunks.push(chunk);
    });
    request.on('end', () => {
      const [only] = chunks;
      resolve((chunks.length === 1 && only ? only : Buffer.concat(chunks)).toString('utf8'));
    });
    request.on('error', () => reject(new InvalidInputError('The body broke off before its end')));
  });
}
