import type { Request, Response } from 'express';

/**
 * Sends 304 if the client has the copy of the `etag` (RFC 9110 13.1.2). Unlike Express, ignores `Cache-Control: no-cache` of the
 * request: `fetch` adds it to every such request.
 *
 * @returns true if it has responded
 */
export function sentNotModified(
  request: Request,
  response: Response,
  headers: { etag: string } & Record<string, string>,
): boolean {
  const tags = request.headers['if-none-match']?.split(',') ?? [];
  if (!tags.some((tag) => ['*', headers.etag].includes(tag.trim().replace(/^W\//, '')))) return false;
  response.set(headers).status(304).end();
  return true;
}
