import { isObject } from '../../platform/text/json.js';
import { HostedFailure } from '../hosting.errors.js';
import type { BundleManifest } from './bundle-files.js';
import { parseBounded } from '../../platform/text/json-bounds.js';

/** The caller's configuration lacks required values, which the message names. */
export class BundleConfigError extends HostedFailure {
  readonly kind = 'invalid';
  readonly code = 'validation_error';
  readonly outcome = 'exception';
  override readonly mayHaveRun = false;
}

/** Command of one session. */
export interface BundleCommand {
  command: string;
  args: string[];
  env: Record<string, string>;
}

/** An argument that consists of one placeholder; a list value becomes several arguments. */
const WHOLE = /^\$\{user_config\.([^}]+)\}$/;

/**
 * Resolves a manifest's `mcp_config` for one session: `${__dirname}` is the unpacked bundle, `${user_config.x}` the
 * caller's value, a secret of that name, or the manifest's default (MCPB manifest 0.3).
 *
 * @param query the caller's query; a name may occur several times for list values
 * @throws BundleConfigError when a required value is missing
 */
export function commandFor(
  { command, args, env, userConfig }: BundleManifest,
  folder: string,
  query: URLSearchParams,
  secrets: Record<string, string>,
): BundleCommand {
  const values = valuesOf(userConfig, query, secrets);
  const places: Record<string, string> = { __dirname: folder, pathSeparator: '/', '/': '/' };
  const fill = (text: string) =>
    text.replace(/\$\{([^}]+)\}/g, (all, name: string) => {
      if (name.startsWith('user_config.')) return values.get(name.slice('user_config.'.length))?.join(',') ?? '';
      return Object.hasOwn(places, name) ? places[name] : all;
    });
  const filled = Object.entries(env).map(([name, text]): [string, string] => [name, fill(text)]);
  return {
    command: fill(command),
    args: args.flatMap((text) => values.get(WHOLE.exec(text)?.[1] ?? '') ?? (WHOLE.test(text) ? [] : [fill(text)])),
    env: { ...secrets, ...Object.fromEntries(filled) },
  };
}

/** Values as text; a name without one is absent. */
function valuesOf(
  userConfig: Record<string, unknown>,
  query: URLSearchParams,
  secrets: Record<string, string>,
): Map<string, string[]> {
  const values = new Map<string, string[]>();
  const missing: string[] = [];
  for (const [name, option] of Object.entries(userConfig)) {
    const { default: fallback, required } = (isObject(option) ? option : {}) as {
      default?: unknown;
      required?: unknown;
    };
    const given = query
      .getAll(name)
      .flatMap(listIn)
      .filter((value) => value !== '');
    const found = given.length > 0 ? given : Object.hasOwn(secrets, name) ? [secrets[name]] : textsOf(fallback);
    if (found.length > 0) values.set(name, found);
    else if (required === true) missing.push(name);
  }
  if (missing.length === 0) return values;
  throw new BundleConfigError(
    `The server wants ${missing.map((name) => `"${name}"`).join(', ')}: send it in the query.`,
  );
}

/** Parses a list, which is sent as one JSON text like every structured value. */
function listIn(value: string): string[] {
  if (!value.startsWith('[')) return [value];
  try {
    return textsOf(parseBounded(value));
  } catch {
    return [value];
  }
}

function textsOf(value: unknown): string[] {
  if (value === undefined || value === null || value === '') return [];
  return (Array.isArray(value) ? value : [value]).map((one) => (typeof one === 'string' ? one : JSON.stringify(one)));
}
