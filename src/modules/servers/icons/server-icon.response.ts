import type { Response } from 'express';
import { dropStalledReader } from '../../../platform/http/stalled-reader.js';
import type { KeptIcon } from './server-icons.service.js';

/** A changed icon is seen after this long; the browser asks again with the hash it has. */
const MAX_AGE_SECONDS = 300;

/**
 * An SVG is a document that may hold scripts: opened by itself it runs in a sandbox, with no origin and no network.
 * `nosniff` is on every answer.
 */
const POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'";

/** The hash in the first of the tags a browser knows an icon by; null without one. */
export function hashFromEtag(etags: string | undefined): string | null {
  return /"([0-9a-f]{64})"/.exec(etags ?? '')?.[1] ?? null;
}

/** Sends an icon, or 304 when the caller has it. */
export function sendIcon(response: Response, { bytes, contentType, hash }: KeptIcon, etags: string | undefined): void {
  response.set({
    etag: `"${hash}"`,
    'cache-control': `private, max-age=${MAX_AGE_SECONDS}`,
    'content-security-policy': POLICY,
  });
  dropStalledReader(response);
  if (hashFromEtag(etags) === hash) response.status(304).end();
  else response.type(contentType).send(bytes);
}
