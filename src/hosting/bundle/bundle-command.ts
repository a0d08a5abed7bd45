import { isObject } from '../../platform/text/json.js';
import { HostedFailure } from '../hosting.errors.js';
import type { BundleManifest } from './bundle-files.js';

/** A session cannot be opened with what the caller configured; the message names what lacks. */
export class BundleConfigError extends HostedFailure {
  readonly kind = 'invalid';
  readonly code = 'validation_error';
  readonly outcome = 'exception';
  override readonly mayHaveRun = false;
}

/** What is started for one session. */
export interface BundleCommand {
  command: string;
  args: string[];
  env: Record<string, string>;
}

/** A whole argument that is nothing but one value; a list becomes as many arguments. */
const WHOLE = /^\$\{user_config\.([^}]+)\}$/;

/**
 * What a manifest's `mcp_config` means for one session: `${__dirname}` is the unpacked bundle, `${user_config.x}` what the
 * caller configured, a secret of that name, or the manifest's default (MCPB manifest 0.3).
 *
 * @param query as the caller sent it; a name may occur twice, for what takes several values
 * @throws BundleConfigError when a required value lacks
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

/** Every value as text; a name without one is absent. */
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

/** A list travels as one JSON text, as every value that is no plain one. */
function listIn(value: string): string[] {
  if (!value.startsWith('[')) return [value];
  try {
    return textsOf(JSON.parse(value));
  } catch {
    return [value];
  }
}

function textsOf(value: unknown): string[] {
  if (value === undefined || value === null || value === '') return [];
  return (Array.isArray(value) ? value : [value]).map((one) => (typeof one === 'string' ? one : JSON.stringify(one)));
}
