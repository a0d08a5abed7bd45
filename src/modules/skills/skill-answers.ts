import type { IncomingMessage } from 'node:http';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Request, Response } from 'express';
import { InvalidInputError, TooLargeError } from '../../platform/errors/domain-error.js';
import { readMultipart } from '../../platform/http/body/multipart.js';
import { dropStalledReader } from '../../platform/http/stalled-reader.js';
import { sentNotModified } from '../../platform/http/not-modified.js';
import { readWithin } from '../../platform/egress/follow.js';
import type { SkillBundle } from './skill-files.service.js';
import { ARCHIVE_BYTES_MAX } from './skill-package.js';
import type { PublishedSkillDto } from './skill.dto.js';
import type { Publication } from './skills.service.js';

/** Content types that browsers can display; other files are sent as text or bytes, HTML as its source. */
const types: Record<string, string> = {
  '.md': 'text/markdown; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
  '.gif': 'image/gif',
  '.webp': 'image/webp',
  '.svg': 'image/svg+xml',
  '.pdf': 'application/pdf',
};

/** Policy that keeps browsers from running or loading content (`nosniff` is on every response). */
const FILE_POLICY = "sandbox; default-src 'none'";

export function answerPublication(response: Response, { created, skill }: Publication): PublishedSkillDto {
  response.status(created ? 201 : 200);
  return skill;
}

export function sendFile(response: Response, file: { path: string; content: Buffer }): void {
  dropStalledReader(response);
  response.set('content-type', typeOf(file)).set('content-security-policy', FILE_POLICY).end(file.content);
}

/** Returns a media type that browsers do not run. */
export function typeOf({ path: name, content }: { path: string; content: Buffer }): string {
  const type = types[path.extname(name).toLowerCase()];
  if (type !== undefined) return type;
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(content);
    return text.includes('\0') ? 'application/octet-stream' : 'text/plain; charset=utf-8';
  } catch {
    return 'application/octet-stream';
  }
}

/** Sends a bundle, or 304 if the client has it. A failure closes the connection, so that an incomplete zip is noticed. */
export async function sendBundle(request: Request, response: Response, bundle: SkillBundle): Promise<void> {
  const validators = { etag: `"${bundle.contentHash}"`, 'cache-control': 'no-cache' };
  if (sentNotModified(request, response, validators)) return;
  const stream = await bundle.open();
  dropStalledReader(response);
  response.set({ ...validators, 'content-type': 'application/zip' });
  response.set('content-disposition', `attachment; filename="${bundle.filename}"`);
  await pipeline(stream, response).catch(() => response.destroy());
}

/** @throws InvalidInputError, TooLargeError */
export async function readArchive(request: IncomingMessage): Promise<Buffer> {
  const { files } = await readMultipart(request, {
    fields: {},
    files: ['archive'],
    take: async (_name, file) => {
      const bytes = await readWithin(file, ARCHIVE_BYTES_MAX);
      if (!bytes) throw new TooLargeError(`The archive is larger than ${ARCHIVE_BYTES_MAX / 1024 / 1024} MB`);
      return bytes;
    },
  });
  if (!files.archive)
    throw new InvalidInputError('The form needs a file part "archive": the zip of the skill’s folder');
  return files.archive;
}
