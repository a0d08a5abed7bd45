import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { InvalidInputError } from '../../../platform/errors/domain-error.js';
import { readMultipart } from '../../../platform/http/multipart.js';
import { ICON_BYTES_MAX, iconTypeOf, type FoundIcon } from './icon-fetch.js';
import { IconTooLargeError } from '../servers.errors.js';

/** Bytes of a file above the limit that are read and dropped before the connection is closed. */
const READ_BYTES_MAX = 32 * ICON_BYTES_MAX;

/**
 * The one image of a multipart form, in a file part of any name.
 *
 * @throws IconTooLargeError past 1 MB; InvalidInputError when it is no such form or no image
 */
export async function readUploadedIcon(request: IncomingMessage): Promise<FoundIcon> {
  let count = 0;
  const { files } = await readMultipart(request, {
    fields: {},
    files: ['*'],
    take: (_name, file) => {
      count += 1;
      if (count > 1) throw new InvalidInputError('The form takes one image');
      return readFile(file);
    },
  });
  const [bytes] = Object.values(files);
  if (!bytes) throw new InvalidInputError('The form must hold the image as a file');
  const type = iconTypeOf(bytes);
  if (type === null) throw new InvalidInputError('The file is no PNG, JPEG, GIF, WebP or SVG image');
  return { bytes, type };
}

/** Reads a file to its end, since most clients read the response only after they have sent everything. */
async function readFile(file: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of file) {
    bytes += (chunk as Buffer).length;
    if (bytes > READ_BYTES_MAX) throw new IconTooLargeError();
    if (bytes <= ICON_BYTES_MAX) chunks.push(chunk as Buffer);
  }
  if (bytes > ICON_BYTES_MAX) throw new IconTooLargeError();
  return Buffer.concat(chunks);
}
