import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import busboy from 'busboy';
import { DomainError, InvalidInputError } from '../errors/domain-error.js';

/** What a multipart body may hold. */
export interface MultipartShape<T> {
  /** Names of text parts and the most bytes each may have; others are refused. */
  fields: Record<string, number>;
  /** Names of file parts. `*` takes a file of any name. */
  files: readonly string[];
  /** Takes one file; must read the stream to its end or throw. Called in the order of the body, one at a time. */
  take: (name: string, file: Readable, info: { filename: string; mimeType: string }) => Promise<T>;
}

export interface Multipart<T> {
  fields: Record<string, string>;
  files: Record<string, T>;
}

/** The body is no multipart form, or breaks off. */
const BROKEN = 'The body is no complete multipart/form-data form';

/**
 * Reads a multipart form; files go through `take` as they arrive and are never held whole.
 *
 * What is left of a refused body is not read: the connection closes with the answer.
 *
 * @throws InvalidInputError for unknown, repeated or oversize parts and for a body that is no form; whatever `take` throws
 */
export function readMultipart<T>(request: IncomingMessage, shape: MultipartShape<T>): Promise<Multipart<T>> {
  return new Promise((resolve, reject) => {
    const form = openForm(request, shape);
    const fields: Record<string, string> = {};
    const files: Record<string, T> = {};
    const seen = new Set<string>();
    let taking: Promise<unknown> = Promise.resolve();
    const fail = (error: unknown) => {
      request.unpipe(form);
      request.pause();
      form.destroy();
      reject(error instanceof DomainError ? error : asInput(error));
    };
    form.on('field', (name, value, { valueTruncated }) => {
      const bytesMax = Object.hasOwn(shape.fields, name) ? shape.fields[name] : undefined;
      if (bytesMax === undefined) return fail(unexpected(name, shape));
      if (Object.hasOwn(fields, name)) return fail(new InvalidInputError(`The part "${name}" is there twice`));
      if (valueTruncated || Buffer.byteLength(value) > bytesMax) {
        return fail(new InvalidInputError(`The part "${name}" is larger than ${bytesMax} bytes`));
      }
      fields[name] = value;
    });
    form.on('file', (name, file, { filename, mimeType }) => {
      // Its end is told by `take`, which reads it; without a listener a torn stream would end the process.
      file.on('error', () => undefined);
      if (!shape.files.includes(name) && !shape.files.includes('*')) return fail(unexpected(name, shape));
      // Known by its name at once: the one before may still be on its way to `files`.
      if (seen.has(name)) return fail(new InvalidInputError(`The part "${name}" is there twice`));
      seen.add(name);
      taking = taking
        .then(() => shape.take(name, file, { filename: filename ?? '', mimeType }))
        .then((taken) => (files[name] = taken));
      taking.catch(fail);
    });
    form.on('error', fail);
    form.on('close', () => void taking.then(() => resolve({ fields, files }), fail));
    request.on('error', fail);
    request.on('close', () => {
      if (!request.complete) form.destroy(new InvalidInputError(`${BROKEN}: it broke off`));
    });
    request.pipe(form);
  });
}

function openForm<T>(request: IncomingMessage, { fields, files }: MultipartShape<T>): busboy.Busboy {
  try {
    return busboy({
      headers: request.headers,
      limits: {
        fieldNameSize: 100,
        // One more than allowed: at its limit busboy calls a value cut that is whole.
        fieldSize: Math.max(0, ...Object.values(fields)) + 1,
        parts: Object.keys(fields).length + files.length + 2,
        headerPairs: 20,
      },
    });
  } catch {
    throw new InvalidInputError('Send the body as multipart/form-data with a boundary');
  }
}

function asInput(error: unknown): Error {
  const { message, code } = error as NodeJS.ErrnoException;
  if (code !== undefined) return error as Error;
  return new InvalidInputError(`${BROKEN}: ${message}`);
}

function unexpected<T>(name: string, { fields, files }: MultipartShape<T>): InvalidInputError {
  const shown = name.slice(0, 100);
  if (Object.hasOwn(fields, name)) return new InvalidInputError(`The part "${shown}" must be text, not a file`);
  const known = [...Object.keys(fields), ...files].join(', ');
  return new InvalidInputError(`The part "${shown}" is not known: the form takes ${known}`);
}
