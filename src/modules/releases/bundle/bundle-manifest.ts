import { parseServerCard, type ServerCard } from '../../../mcp/client/server-card.js';
import { entryPointPath, MANIFEST_BYTES_MAX } from '../../../hosting/bundle/unpack-bundle.js';
import { DEPTH_MAX, storableFault } from '../../../platform/database/storable.js';
import { InvalidInputError } from '../../../platform/errors/domain-error.js';
import { quote, visible } from '../../../platform/text/quoted.js';
import type { ZipArchive } from '../../../platform/zip/zip-archive.js';
import type { BundleRuntime } from '../../servers/server.types.js';
import type { ConfigSchema } from '../config/config-fields.js';
import { isObject, withoutBom } from '../../../platform/text/json.js';
import { parseBounded } from '../../../platform/text/json-bounds.js';

const TYPES: Record<string, string> = {
  string: 'string',
  number: 'number',
  boolean: 'boolean',
  file: 'string',
  directory: 'string',
};

interface Property {
  schema: Record<string, unknown>;
  isRequired: boolean;
}

/** A map, because publishers choose the names. */
interface Nested {
  properties: Map<string, Nested | Property>;
  isRequired: boolean;
}

export interface BundleFacts {
  serverInfo: ServerCard['serverInfo'];
  runtime: BundleRuntime;
  /** True if `uv` of the host starts it. */
  isOfUv: boolean;
  /** Tools in the manifest; often without `inputSchema`. */
  tools: Record<string, unknown>[];
  /** True if these are all tools and each has a schema. */
  isComplete: boolean;
  /** Null if the manifest lists none. */
  prompts: Record<string, unknown>[] | null;
  /** JSON Schema of the values that a user enters at installation (`user_config`); `{}` without any. */
  configSchema: ConfigSchema | Record<string, never>;
}

const MANIFEST = 'manifest.json';

/**
 * Reads versions 0.1 to 0.4, and the predecessor DXT, and checks what an installation needs: name, version, start
 * command, and the file to start. Unknown members are ignored.
 *
 * @throws InvalidInputError naming the problem and what to do; InvalidArchiveError
 */
export async function readBundle(zip: ZipArchive): Promise<BundleFacts> {
  const manifest = await readManifest(zip);
  const server = requireObject(manifest.server, 'server');
  const start = server.type === 'uv' ? (server.mcp_config ?? { command: 'uv' }) : server.mcp_config;
  const { command, args, env } = requireObject(start, 'server.mcp_config');
  const startCommand = requireText(command, 'server.mcp_config.command');
  if (args !== undefined && !(Array.isArray(args) && args.every((arg) => typeof arg === 'string'))) {
    throw fault('server.mcp_config.args must be an array of strings');
  }
  if (env !== undefined && !(isObject(env) && Object.values(env).every((value) => typeof value === 'string'))) {
    throw fault('server.mcp_config.env must be an object of strings');
  }
  // A bundle that starts a program of its host has no file to start.
  const isOfHost = ![startCommand, ...(args ?? [])].some((text) => text.includes('${__dirname}'));
  const entryPoint =
    isOfHost && server.entry_point === '' ? null : requireText(server.entry_point, 'server.entry_point');
  const path = entryPoint === null ? '' : entryPointPath(entryPoint);
  // Clients add the `.exe` that binaries have on Windows, so the manifest can omit it.
  const isThere = [path, `${path}.exe`].some((candidate) => zip.entries.get(candidate)?.isDirectory === false);
  if (entryPoint !== null && !isThere)
    throw fault(`server.entry_point names ${quote(path, 120)}, and there is no such file in the bundle`);
  // Names, tools and prompts follow the rules of server cards.
  const { name, version, display_name: title, description, homepage: websiteUrl, user_config: userConfig } = manifest;
  const optional = Object.entries({ title, description, websiteUrl }).filter(([, value]) => value);
  const serverInfo = { name, version, ...Object.fromEntries(optional) };
  const card = inManifest(() => parseServerCard({ serverInfo, tools: manifest.tools, prompts: manifest.prompts }));
  const tools = card.tools ?? [];
  const options = requireObject(userConfig ?? {}, 'user_config');
  return {
    serverInfo: card.serverInfo,
    isOfUv: startCommand === 'uv',
    runtime: runtimeOf(zip, server.type, startCommand),
    tools,
    isComplete: tools.length > 0 && manifest.tools_generated !== true && tools.every(({ inputSchema }) => inputSchema),
    prompts: card.prompts ?? null,
    configSchema: inManifest(() => userConfigSchema(options)),
  };
}

async function readManifest(zip: ZipArchive): Promise<Record<string, unknown>> {
  if (zip.entries.get(MANIFEST)?.isDirectory !== false) {
    const inside = [...zip.entries.keys()].find((path) => /^[^/]+\/manifest\.json$/.test(path));
    const hint =
      inside === undefined ? '' : ` (it is at ${quote(inside)}: pack what is in that folder, not the folder)`;
    throw new InvalidInputError(
      `manifest.json is missing at the root of the bundle${hint}: build it with \`mcpb pack\`.`,
    );
  }
  const text = withoutBom((await zip.read(MANIFEST, MANIFEST_BYTES_MAX)).toString('utf8'));
  let manifest: unknown;
  try {
    manifest = parseBounded(text);
  } catch (error) {
    throw new InvalidInputError(`manifest.json is not valid JSON: ${visible((error as Error).message, 200)}.`);
  }
  if (!isObject(manifest)) throw new InvalidInputError('manifest.json must hold a JSON object.');
  const unstorable = storableFault(manifest);
  if (unstorable !== null) throw new InvalidInputError(`manifest.json ${unstorable}.`);
  return manifest;
}

/** Derives the runtime as published tools do. Bundles of uv are Python. */
function runtimeOf(zip: ZipArchive, type: unknown, command: string): BundleRuntime {
  if (/(?:^|[\\/])bun(?:\.exe)?$/.test(command)) return 'bun';
  if (type === 'uv') return 'python';
  if (type === 'python' || type === 'node' || type === 'binary' || type === 'bun') return type;
  if ([...zip.entries.keys()].some((path) => path.startsWith('bin/'))) return 'binary';
  throw fault('server.type must be "node", "python", "binary", "bun" or "uv"');
}

function inManifest<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    throw fault(error.message.replace(/^serverCard\.(?:serverInfo\.)?/, ''));
  }
}

function requireObject(value: unknown, path: string): Record<string, unknown> {
  if (isObject(value)) return value;
  throw fault(`${path} must be an object`);
}

function requireText(value: unknown, path: string): string {
  if (typeof value !== 'string' || value === '') throw fault(`${path} must be a string that is not empty`);
  return value;
}

function fault(text: string): InvalidInputError {
  return new InvalidInputError(`manifest.json: ${text}. \`mcpb validate\` checks a manifest before it is packed.`);
}

/**
 * Returns the schema of user values as published tools do: dotted names become nested objects, files and directories strings, and `multiple` a list.
 * `sensitive` is kept as `x-sensitive`.
 *
 * @returns `{}` without values
 * @throws InvalidInputError naming the invalid entry
 */
function userConfigSchema(userConfig: Record<string, unknown>): ConfigSchema | Record<string, never> {
  const root = emptyObject();
  for (const [name, option] of Object.entries(userConfig)) {
    const steps = name.split('.');
    if (steps.length > DEPTH_MAX || steps.includes('')) {
      throw new InvalidInputError(
        `user_config.${quote(name)} is not a valid name: write it as "apiKey" or "database.host"`,
      );
    }
    const property = toProperty(option, name);
    let at = root;
    for (const step of steps.slice(0, -1)) {
      const inner = at.properties.get(step) ?? emptyObject();
      if (!('properties' in inner)) throw clash(name);
      // An object with a required property is required itself.
      inner.isRequired ||= property.isRequired;
      at.properties.set(step, inner);
      at = inner;
    }
    const last = steps[steps.length - 1];
    if (at.properties.has(last)) throw clash(name);
    at.properties.set(last, property);
  }
  return root.properties.size === 0 ? {} : (toSchema(root) as ConfigSchema);
}

function emptyObject(): Nested {
  return { properties: new Map(), isRequired: false };
}

function clash(name: string): InvalidInputError {
  return new InvalidInputError(`user_config.${quote(name)} has a value and nested values: rename one of them`);
}

function toProperty(value: unknown, name: string): Property {
  const path = `user_config.${/^[\w.-]{1,64}$/.test(name) ? name : quote(name)}`;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InvalidInputError(`${path} must be an object`);
  }
  const option = value as Record<string, unknown>;
  const type = typeof option.type === 'string' && Object.hasOwn(TYPES, option.type) ? TYPES[option.type] : undefined;
  if (type === undefined) {
    throw new InvalidInputError(`${path}.type must be one of ${Object.keys(TYPES).join(', ')}`);
  }
  const annotations: [string, unknown][] = [
    ['title', typeof option.title === 'string' ? option.title : undefined],
    ['description', typeof option.description === 'string' ? option.description : undefined],
    ['default', option.default ?? undefined],
    ['x-sensitive', option.sensitive === true ? true : undefined],
  ];
  const more = Object.fromEntries(
    annotations.filter(([, annotation]) => annotation !== undefined && annotation !== ''),
  );
  const range = Object.entries({ minimum: option.min, maximum: option.max }).filter(
    ([, limit]) => type === 'number' && typeof limit === 'number',
  );
  const single = { type, ...Object.fromEntries(range) };
  const schema = option.multiple === true ? { type: 'array', items: single, ...more } : { ...single, ...more };
  return { schema, isRequired: option.required === true };
}

function toSchema({ properties }: Nested): Record<string, unknown> {
  const required = [...properties].filter(([, property]) => property.isRequired).map(([name]) => name);
  return {
    type: 'object',
    properties: Object.fromEntries(
      [...properties].map(([name, property]) => [
        name,
        'properties' in property ? toSchema(property) : property.schema,
      ]),
    ),
    ...(required.length === 0 ? {} : { required }),
  };
}
