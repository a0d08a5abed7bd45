import type { IncomingMessage } from 'node:http';
import { RouteNotFoundError } from '../errors/http-errors.js';
import { INTERNAL_HEADER, type InternalSignatures } from './internal-signatures.js';
import { readBody } from '../http/request-body.js';

/** One MCP message (16 MB) and a line about it. */
const BODY_BYTES_MAX = 16 * 1024 * 1024 + 64 * 1024;

/** What another process asks by {@link InternalCalls.post}: the line, and what follows it. */
export interface InternalRequest<Head> {
  head: Head;
  rest: string;
}

/**
 * Reads what another process of this service asks. Nothing of anybody else's body is read.
 *
 * @throws RouteNotFoundError for anybody else, so that they find nothing here
 */
export async function readInternal<Head>(
  request: IncomingMessage,
  signatures: InternalSignatures,
): Promise<InternalRequest<Head>> {
  const path = request.url ?? '';
  const isSigned = signatures.verify(path, request.headers[INTERNAL_HEADER]);
  if (!isSigned) throw new RouteNotFoundError('POST', path);
  const body = await readBody(request, BODY_BYTES_MAX);
  if (!isSigned(body)) throw new RouteNotFoundError('POST', path);
  const end = body.indexOf('\n');
  return { head: JSON.parse(body.slice(0, end)) as Head, rest: body.slice(end + 1) };
}
