import { createWriteStream } from 'node:fs';
import { chmod, mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { isObject } from '../../platform/text/json.js';
import { openZip, type ZipArchive } from '../../platform/zip/zip-archive.js';
import { ProgramStartError } from '../hosting.errors.js';

const MB = 1024 * 1024;

/** A bundle of 25 MB with all its node_modules has some thousand files and unpacks to a few times its size. */
const UNPACKED_LIMITS = { entriesMax: 20_000, totalBytesMax: 500 * MB };
const FILE_BYTES_MAX = 200 * MB;
const MANIFEST_BYTES_MAX = MB;

/** How a bundle wants to be started, as its manifest writes it. */
export interface BundleManifest {
  command: string;
  args: string[];
  env: Record<string, string>;
  /** What it asks the person who installs it for. */
  userConfig: Record<string, unknown>;
}

/**
 * Unpacks a bundle that was checked when it was published into an empty folder, readable by everybody and writable by none
 * but the service, and says how it is started.
 *
 * @throws InvalidArchiveError, ProgramStartError when its manifest cannot be used
 */
export async function unpackBundle(file: string, folder: string): Promise<BundleManifest> {
  const zip = await openZip(file, UNPACKED_LIMITS);
  try {
    const manifest = await readManifest(zip);
    await chmod(folder, 0o755);
    for (const [path, { isDirectory, mode }] of zip.entries) {
      if (!isDirectory) await unpack(zip, path, join(folder, path), (mode & 0o111) === 0 ? 0o644 : 0o755);
    }
    return manifest;
  } finally {
    zip.close();
  }
}

async function unpack(zip: ZipArchive, path: string, target: string, mode: number): Promise<void> {
  await mkdir(dirname(target), { recursive: true, mode: 0o755 });
  await pipeline([await zip.read(path, FILE_BYTES_MAX)], createWriteStream(target, { flags: 'wx', mode }));
}

async function readManifest(zip: ZipArchive): Promise<BundleManifest> {
  const text = (await zip.read('manifest.json', MANIFEST_BYTES_MAX)).toString('utf8').replace(/^\uFEFF/, '');
  const manifest: unknown = JSON.parse(text);
  const server = isObject(manifest) && isObject(manifest.server) ? manifest.server : {};
  const start = isObject(server.mcp_config) ? server.mcp_config : {};
  if (typeof start.command !== 'string') {
    throw new ProgramStartError('The manifest of the bundle does not say how it is started: publish it again.');
  }
  const userConfig = isObject(manifest) && isObject(manifest.user_config) ? manifest.user_config : {};
  const { command, args, env } = forThisSystem(start);
  return { command, args, env, userConfig };
}

/** `platform_overrides` of a manifest replace what it says for every system. */
function forThisSystem(start: Record<string, unknown>): Pick<BundleManifest, 'command' | 'args' | 'env'> {
  const overrides = isObject(start.platform_overrides) ? start.platform_overrides[process.platform] : undefined;
  const { command, args, env } = { ...start, ...(isObject(overrides) ? overrides : {}) };
  return {
    command: String(command),
    args: Array.isArray(args) ? args.map(String) : [],
    env: isObject(env) ? Object.fromEntries(Object.entries(env).map(([name, value]) => [name, String(value)])) : {},
  };
}
