import type { Response } from 'supertest';
import supertest from 'supertest';
import type { TestAccount, TestApp } from '../app.js';
import { pathOf } from '../database/server-rows.js';

const tail = Buffer.from('the rest of the picture');

/** The beginnings of images, each with some bytes behind it. */
export const images = {
  'image/png': Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'), tail]),
  'image/jpeg': Buffer.concat([Buffer.from('\xff\xd8\xff\xe0', 'latin1'), tail]),
  'image/gif': Buffer.concat([Buffer.from('GIF89a', 'latin1'), tail]),
  'image/webp': Buffer.concat([Buffer.from('RIFF\x10\x00\x00\x00WEBP', 'latin1'), tail]),
  'image/svg+xml': Buffer.from(
    '\ufeff<?xml version="1.0"?>\n<!-- a -->\n<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
  ),
} as const;

/** Sends a form with one file, as any program does. */
export async function uploadIcon(
  app: TestApp,
  account: TestAccount | undefined,
  qualifiedName: string,
  bytes: Buffer,
  { field = 'file', filename = 'icon.bin', contentType = 'application/octet-stream' } = {},
): Promise<Response> {
  const request = supertest(app.url).put(pathOf(qualifiedName, '/icon'));
  if (account) void request.set('authorization', `Bearer ${account.key}`);
  return request.attach(field, bytes, { filename, contentType });
}
