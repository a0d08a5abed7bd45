import type { IncomingMessage } from 'node:http';
import { InvalidInputError } from '../../../platform/errors/domain-error.js';
import { readFile, readMultipart } from '../../../platform/http/multipart.js';
import { ICON_BYTES_MAX, iconTypeOf, type FoundIcon } from './icon-fetch.js';
import { IconTooLargeError } from '../servers.errors.js';

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
      return readFile(file, ICON_BYTES_MAX, () => new IconTooLargeError());
    },
  });
  const [bytes] = Object.values(files);
  if (!bytes) throw new InvalidInputError('The form must hold the image as a file');
  const type = iconTypeOf(bytes);
  if (type === null) throw new InvalidInputError('The file is no PNG, JPEG, GIF, WebP or SVG image');
  return { bytes, type };
}
