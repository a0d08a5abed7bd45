import { InvalidInputError } from '../../../platform/errors/domain-error.js';
import { isObject } from '../../../platform/text/json.js';
import { storableFault } from '../../../platform/database/storable.js';
import type { StoredSource } from './connection.types.js';

/** What published clients allow for one file. */
const FILE_BYTES_MAX = 128 * 1024;
const EXTENSION = /^(?!\.)[\w.-]{1,200}\.(?:ts|tsx|mts|cts)$/;

/**
 * A module as published clients send it: one TypeScript file that is its own entrypoint.
 *
 * @throws InvalidInputError for any other shape
 */
export function requireSource(value: Record<string, unknown>): StoredSource {
  const { kind, entrypoint, sourceFiles, ...others } = value;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw new InvalidInputError(`source has no member "${unknown}"`);
  if (kind !== 'module') throw new InvalidInputError('source.kind must be "module"');
  if (typeof entrypoint !== 'string' || !EXTENSION.test(entrypoint)) {
    throw new InvalidInputError('source.entrypoint must name a .ts, .tsx, .mts or .cts file');
  }
  if (!Array.isArray(sourceFiles) || sourceFiles.length !== 1 || !isObject(sourceFiles[0])) {
    throw new InvalidInputError('source.sourceFiles must hold exactly one file: {path, contents}');
  }
  const { path, contents, ...more } = sourceFiles[0];
  const [extra] = Object.keys(more);
  if (extra !== undefined) throw new InvalidInputError(`a source file has no member "${extra}"`);
  if (path !== entrypoint) throw new InvalidInputError('source.entrypoint must be the path of the source file');
  if (typeof contents !== 'string' || contents.trim() === '') {
    throw new InvalidInputError('the contents of a source file must be its text');
  }
  const fault = storableFault(contents);
  if (fault !== null) throw new InvalidInputError(`the contents of ${entrypoint} ${fault}`);
  if (Buffer.byteLength(contents) > FILE_BYTES_MAX) {
    throw new InvalidInputError(`${entrypoint} must be at most ${FILE_BYTES_MAX / 1024} KB`);
  }
  return { kind: 'module', entrypoint, sourceFiles: [{ path: entrypoint, contents }] };
}
