import { ZipFile } from 'yazl';

/** Content of a file of a zip, with a mode such as `0o100755` where that matters. */
export type ZipContent = string | Buffer | { content: string | Buffer; mode: number };

/** A zip of these files; a name that ends in `/` is a folder. */
export async function zipOf(files: Record<string, ZipContent>): Promise<Buffer> {
  const zip = new ZipFile();
  for (const [name, file] of Object.entries(files)) {
    if (name.endsWith('/')) {
      zip.addEmptyDirectory(name);
      continue;
    }
    const { content, mode } = typeof file === 'object' && 'mode' in file ? file : { content: file, mode: 0o100644 };
    const buffer = Buffer.from(content);
    // Deflating takes 0.5 ms, even of nothing.
    zip.addBuffer(buffer, name, { mode, compress: buffer.length > 0 });
  }
  zip.end();
  const chunks: Buffer[] = [];
  for await (const chunk of zip.outputStream as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Replaces a name everywhere in a zip by another of the same length: writers refuse the names that hostile zips have. */
export function renamed(zip: Buffer, from: string, to: string): Buffer {
  if (from.length !== to.length) throw new Error('Names must be of one length');
  return Buffer.from(zip.toString('latin1').replaceAll(from, to), 'latin1');
}

const CENTRAL = 'PK\x01\x02';

/** Writes into every central directory record of a zip, at this offset within the record. */
export function patchedRecords(zip: Buffer, patch: (record: Buffer) => void): Buffer {
  const copy = Buffer.from(zip);
  for (let at = copy.indexOf(CENTRAL, 0, 'latin1'); at >= 0; at = copy.indexOf(CENTRAL, at + 4, 'latin1')) {
    patch(copy.subarray(at));
  }
  return copy;
}

/** Offsets in a central directory record. */
export const recordField = {
  flags: 8,
  method: 10,
  checksum: 16,
  compressedSize: 20,
  size: 24,
  externalAttributes: 38,
} as const;
