import { createWriteStream } from 'node:fs';
import { chmod, mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { isObject, withoutBom } from '../../platform/text/json.js';
import { openZip, type ZipArchive } from '../../platform/zip/zip-archive.js';
import { InvalidInputError } from '../../platform/errors/domain-error.js';
import { ProgramStartError } from '../hosting.errors.js';
import { jsonIn, parseBounded } from '../../platform/text/json-bounds.js';

const MB = 1024 * 1024;

/** A bundle of 25 MB with its node_modules has some thousand files and unpacks to a few times its size. */
export const BUNDLE_LIMITS = { entriesMax: 20_000, totalBytesMax: 500 * MB };
const FILE_BYTES_MAX = 200 * MB;

/** The largest manifests, with every tool's schema and translations, have some hundred kilobytes. */
export const MANIFEST_BYTES_MAX = MB;

export function entryPointPath(entryPoint: string): string {
  return entryPoint
    .replaceAll('\\', '/')
    .replace(/^\$\{__dirname\}\//, '')
    .replace(/^(?:\.\/)+/, '');
}

interface BundleCommand {
  command: string;
  args: string[];
  env: Record<string, string>;
}

/** An argument that consists of one placeholder; a list value becomes several arguments. */
const WHOLE = /^\$\{user_config\.([^}]+)\}$/;

export interface BundleManifest extends BundleCommand {
  userConfig: Record<string, unknown>;
}

/**
 * Unpacks a bundle, validated at publishing, into an empty folder, readable by everybody and writable only by the
 * service.
 *
 * @throws InvalidArchiveError, ProgramStartError when its manifest is unusable
 */
export async function unpackBundle(file: string, folder: string): Promise<BundleManifest> {
  const zip = await openZip(file, BUNDLE_LIMITS);
  try {
    const { entryPoint, ...manifest } = await readManifest(zip);
    const started = new Set([entryPoint, manifest.command].map(entryPointPath));
    await chmod(folder, 0o755);
    for (const [path, { isDirectory, mode }] of zip.entries) {
      if (isDirectory) continue;
      const target = join(folder, path);
      await mkdir(dirname(target), { recursive: true, mode: 0o755 });
      const content = await zip.read(path, FILE_BYTES_MAX);
      // Archivers of Windows store no permissions.
      const isProgram =
        (mode & 0o111) !== 0 || started.has(path) || (mode === 0 && PROGRAM.test(content.toString('latin1', 0, 4)));
      await pipeline([content], createWriteStream(target, { flags: 'wx', mode: isProgram ? 0o755 : 0o644 }));
    }
    return manifest;
  } finally {
    zip.close();
  }
}

/** First bytes of a script, and of a program of Linux. */
const PROGRAM = /^(?:#!|\x7fELF)/;

async function readManifest(zip: ZipArchive): Promise<BundleManifest & { entryPoint: string }> {
  const text = withoutBom((await zip.read('manifest.json', MANIFEST_BYTES_MAX)).toString('utf8'));
  const manifest = parseBounded(text);
  const server = isObject(manifest) && isObject(manifest.server) ? manifest.server : {};
  const entryPoint = typeof server.entry_point === 'string' ? server.entry_point : '';
  // Manifest 0.4: a bundle of uv needs no command.
  const ofUv = { command: 'uv', args: ['run', '--directory', '${__dirname}', entryPointPath(entryPoint)] };
  const start: Record<string, unknown> = isObject(server.mcp_config)
    ? server.mcp_config
    : server.type === 'uv'
      ? ofUv
      : {};
  if (typeof start.command !== 'string') {
    throw new ProgramStartError('The manifest of the bundle does not say how it is started: publish it again.');
  }
  const overrides = isObject(start.platform_overrides) ? start.platform_overrides[process.platform] : undefined;
  const { command, args, env } = { ...start, ...(isObject(overrides) ? overrides : {}) };
  return {
    entryPoint,
    command: String(command),
    args: Array.isArray(args) ? args.map(String) : [],
    env: isObject(env) ? Object.fromEntries(Object.entries(env).map(([name, value]) => [name, String(value)])) : {},
    userConfig: isObject(manifest) && isObject(manifest.user_config) ? manifest.user_config : {},
  };
}

/**
 * Returns the command with its placeholders replaced: `${__dirname}` is the unpacked bundle, `${user_config.x}` the caller's value, a secret of that name, or the
 * manifest's default (MCPB manifest 0.3), in which `${HOME}`, `${DESKTOP}`, `${DOCUMENTS}` and `${DOWNLOADS}` are
 * `home` and folders in it.
 *
 * @param home folder in which the session may write
 * @param query the caller's query; a name may occur several times for list values
 * @throws InvalidInputError when required values are missing, which it names
 */
export function commandFor(
  { command, args, env, userConfig }: BundleManifest,
  { folder, home }: { folder: string; home: string },
  query: URLSearchParams,
  secrets: Record<string, string>,
): BundleCommand {
  const places: Record<string, string> = {
    ...{ __dirname: folder, pathSeparator: '/', '/': '/', HOME: home },
    ...{ DESKTOP: `${home}/Desktop`, DOCUMENTS: `${home}/Documents`, DOWNLOADS: `${home}/Downloads` },
  };
  const inPlace = (text: string) =>
    text.replace(/\$\{([^}]+)\}/g, (all, name: string) => (Object.hasOwn(places, name) ? places[name] : all));
  const values = valuesOf(userConfig, query, secrets, inPlace);
  const fill = (text: string) =>
    text.replace(/\$\{([^}]+)\}/g, (all, name: string) => {
      if (name.startsWith('user_config.')) return values.get(name.slice('user_config.'.length))?.join(',') ?? '';
      return Object.hasOwn(places, name) ? places[name] : all;
    });
  const filled = Object.entries(env).map(([name, text]): [string, string] => [name, fill(text)]);
  return {
    command: fill(command),
    // A value that is left out stays an empty argument: the option before it would take the next one as its value.
    args: args.flatMap((text) => values.get(WHOLE.exec(text)?.[1] ?? '') ?? [fill(text)]),
    env: { ...secrets, ...Object.fromEntries(filled) },
  };
}

/** Returns the values of an option as strings: any number with `multiple`, otherwise at most one. */
function valuesOf(
  userConfig: Record<string, unknown>,
  query: URLSearchParams,
  secrets: Record<string, string>,
  inPlace: (text: string) => string,
): Map<string, string[]> {
  const values = new Map<string, string[]>();
  const missing: string[] = [];
  for (const [name, value] of Object.entries(userConfig)) {
    const option = isObject(value) ? value : {};
    const isList = option.multiple === true;
    const defaults = textsOf(option.default);
    const sent = query.getAll(name).filter((text) => text !== '');
    const ownValues = sent.length > 0 ? sent : Object.hasOwn(secrets, name) ? [secrets[name]] : null;
    const strings = !ownValues ? defaults : isList ? ownValues.flatMap(listIn) : ownValues.slice(0, 1);
    // The default might also arrive as the value of a caller that sent none.
    const resolved = strings.map((text) => (defaults.includes(text) ? inPlace(text) : text));
    if (resolved.length > 0 || isList) values.set(name, resolved);
    if (resolved.length === 0 && option.required === true) missing.push(name);
  }
  if (missing.length === 0) return values;
  throw new InvalidInputError(
    `The server wants ${missing.map((name) => `"${name}"`).join(', ')}: send it in the query.`,
  );
}

/** Parses a list, which is sent as one JSON string, like every structured value, or as several values. */
function listIn(text: string): string[] {
  const list = text.startsWith('[') ? jsonIn(text) : undefined;
  return Array.isArray(list) ? list.map((item) => textsOf(item)[0] ?? '') : [text];
}

function textsOf(value: unknown): string[] {
  if (value === undefined || value === null || value === '') return [];
  return (Array.isArray(value) ? value : [value]).map((item) =>
    typeof item === 'string' ? item : JSON.stringify(item),
  );
}
