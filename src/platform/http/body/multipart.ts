import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import busboy from 'busboy';
import { DomainError, InvalidInputError } from '../../errors/domain-error.js';
import { readWithin } from '../../egress/follow.js';
import { bodyLeaseOf } from './body-budget.js';

export interface MultipartShape<T> {
  /** Lists size limits in bytes by name; other fields are rejected. */
  fields: Record<string, number>;
  /** `*` accepts a file of any name. */
  files: readonly string[];
  /** `take` stores files elsewhere: only text parts stay in memory and count against the budget of bodies. */
  isStored?: boolean;
  /** Handles one file; must read the stream to its end or throw. Called in the order of the body, one at a time. */
  take: (
    name: string,
    file: Readable,
    info: { filename: string; mimeType: string },
    /** Text parts before the file. */
    fields: Readonly<Record<string, string>>,
  ) => Promise<T>;
}

export interface Multipart<T> {
  fields: Record<string, string>;
  files: Record<string, T>;
}

const BROKEN = 'The body is not a complete multipart/form-data form';

/**
 * Reads a form, and passes files to `take` as they arrive. The rest of a rejected body is left unread.
 *
 * @throws UnavailableError; InvalidInputError for unknown, repeated or oversize parts and for a body that is not a
 * form; errors of `take`
 */
export function readMultipart<T>(request: IncomingMessage, shape: MultipartShape<T>): Promise<Multipart<T>> {
  return new Promise((resolve, reject) => {
    // The library accepts other forms too.
    if (!/^multipart\/form-data\b/i.test(request.headers['content-type'] ?? '')) throw notForm();
    let form: busboy.Busboy;
    try {
      form = busboy({
        headers: request.headers,
        defParamCharset: 'utf8',
        limits: {
          fieldNameSize: 100,
          // One more than allowed: a value of exactly this size is already reported as cut off.
          fieldSize: Math.max(0, ...Object.values(shape.fields)) + 1,
          parts: Object.keys(shape.fields).length + shape.files.length + 2,
          headerPairs: 20,
        },
      });
    } catch {
      throw notForm();
    }
    // A request emits no event after its client has disconnected.
    if (request.destroyed) throw brokenOff();
    const lease = bodyLeaseOf(request);
    lease.begin();
    let isStoring = false;
    const fail = (error: unknown) => {
      request.unpipe(form);
      request.pause();
      form.destroy();
      reject(error);
    };
    const finish = collect(form, shape, fail);
    request.on('data', (chunk: Buffer) => {
      try {
        if (!isStoring) lease.add(chunk.length);
      } catch (error) {
        fail(error);
      }
    });
    if (shape.isStored) {
      form.on('file', (_name, file) => {
        isStoring = true;
        file.once('close', () => (isStoring = false));
      });
    }
    form.on('partsLimit', () => fail(new InvalidInputError('The form holds too many parts')));
    form.on('error', (error) => fail(asInput(error)));
    form.on('close', () => void finish().then(resolve, fail));
    request.on('error', () => fail(brokenOff()));
    request.on('close', () => {
      if (!request.complete) form.destroy(brokenOff());
    });
    request.pipe(form);
  });
}

/** @returns functions to call once the form is complete */
function collect<T>(
  form: busboy.Busboy,
  shape: MultipartShape<T>,
  fail: (error: unknown) => void,
): () => Promise<Multipart<T>> {
  // A name can be that of a property of every object.
  const fields = Object.create(null) as Record<string, string>;
  const files = Object.create(null) as Record<string, T>;
  const partNames = new Set<string>();
  let taking: Promise<unknown> = Promise.resolve();
  const refusalOf = (name: string, isKnown: boolean): InvalidInputError | null => {
    if (!isKnown) {
      const label = name.slice(0, 100);
      if (shape.files.includes(name)) return new InvalidInputError(`The part "${label}" must be a file, not text`);
      const parts = shape.files.map((file) => (file === '*' ? 'a file of any name' : file));
      const accepted = [...Object.keys(shape.fields), ...parts].join(', ');
      return new InvalidInputError(`The part "${label}" is not known: the form takes ${accepted}`);
    }
    if (partNames.has(name)) return new InvalidInputError(`The part "${name}" is there twice`);
    partNames.add(name);
    return null;
  };
  const tooLong = (name: string) =>
    new InvalidInputError(`The part "${name}" is larger than ${shape.fields[name] ?? 0} bytes`);
  const setField = (name: string, value: string) => {
    if (Buffer.byteLength(value) > (shape.fields[name] ?? 0)) return fail(tooLong(name));
    fields[name] = value;
  };
  // The library omits a name or a value that is missing or in an unknown charset, contrary to its types.
  form.on('field', (name: string | undefined = '', value: string | undefined, { valueTruncated }) => {
    // Swagger UI and other pages send this for a file that was not chosen.
    if (value === '' && shape.files.includes(name)) return;
    const refused = refusalOf(name, Object.hasOwn(shape.fields, name));
    if (refused) return fail(refused);
    if (value === undefined)
      return fail(new InvalidInputError(`The part "${name}" is in an unknown charset: send UTF-8`));
    if (valueTruncated) return fail(tooLong(name));
    setField(name, value);
  });
  form.on('file', (name: string | undefined = '', file, { filename, mimeType }) => {
    let torn: unknown;
    // `take` reads it and reports its errors; without a listener a broken stream would crash the process.
    file.on('error', (error) => (torn = error));
    const isText = Object.hasOwn(shape.fields, name);
    const refused = refusalOf(name, isText || shape.files.includes(name) || shape.files.includes('*'));
    if (refused) return fail(refused);
    taking = taking.then(async () => {
      if (!isText) {
        files[name] = await shape.take(name, file, { filename: filename ?? '', mimeType }, fields);
        return;
      }
      // Clients generated from an API document send a string with its own media type as a file.
      const bytes = await readWithin(file, shape.fields[name] ?? 0);
      if (bytes) setField(name, String(bytes));
      else fail(tooLong(name));
    });
    taking.catch((error: unknown) => fail(error === torn ? asInput(error) : error));
  });
  return () => taking.then(() => ({ fields, files }));
}

function brokenOff(): InvalidInputError {
  return new InvalidInputError(`${BROKEN}: it broke off`);
}

function notForm(): InvalidInputError {
  return new InvalidInputError('Send the body as multipart/form-data with a boundary');
}

function asInput(error: unknown): DomainError {
  return error instanceof DomainError ? error : new InvalidInputError(`${BROKEN}: ${(error as Error).message}`);
}
