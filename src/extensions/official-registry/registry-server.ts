/**
 * Reads entries of the official MCP registry (`server.json`, schema of 11 December 2025). Everything is untrusted:
 * values of other types are left out, strings are cut, and an entry without a name is skipped.
 */
import { isObject, visible, type JsonObject } from '../../extension.js';

export const SERVERS_MAX = 30;

const NAME_CHARS_MAX = 200;
const TEXT_CHARS_MAX = 500;
const URL_CHARS_MAX = 2_000;

const LIST_MAX = 20;

/** A package that a shell and its runner treat as one word: a name or an image. */
const PACKAGE = /^[\w@][\w@./:+-]*$/;

const VERSION = /^[\w.+-]+$/;

const RUNNERS: Record<string, (identifier: string, version: string) => { command: string; args: string[] }> = {
  npm: (name, version) => ({ command: 'npx', args: ['-y', version === '' ? name : `${name}@${version}`] }),
  pypi: (name, version) => ({ command: 'uvx', args: [version === '' ? name : `${name}@${version}`] }),
  oci: (name, version) => ({
    command: 'docker',
    args: ['run', '-i', '--rm', version === '' || /[:@][^/]*$/.test(name) ? name : `${name}:${version}`],
  }),
  nuget: (name, version) => ({ command: 'dnx', args: [version === '' ? name : `${name}@${version}`, '--yes'] }),
};

export interface NeededValue {
  name: string;
  description: string;
  isRequired: boolean;
}

export type Way =
  | {
      kind: 'remote';
      url: string;
      /** Variables in braces in the URL, which a person must replace. */
      variables: NeededValue[];
      headers: NeededValue[];
      fixedHeaders: Record<string, string>;
    }
  | {
      kind: 'command';
      config: { command: string; args: string[]; env: Record<string, string> };
      variables: NeededValue[];
    };

export interface RegistryServer {
  name: string;
  title: string;
  description: string;
  version: string;
  isDeprecated: boolean;
  /** The `https://` URL of the source code or the site. */
  page: string | null;
  ways: Way[];
}

/** Reads a page of the list. @returns null if the document has another form */
export function readServerList(document: unknown): { servers: RegistryServer[]; nextCursor: string | null } | null {
  if (!isObject(document) || !Array.isArray(document.servers)) return null;
  const metadata = isObject(document.metadata) ? document.metadata : {};
  const { nextCursor } = metadata;
  return {
    servers: objectsIn(document.servers, SERVERS_MAX).flatMap((entry) => readServer(entry) ?? []),
    nextCursor: typeof nextCursor === 'string' && nextCursor !== '' ? nextCursor : null,
  };
}

function readServer(entry: JsonObject): RegistryServer | null {
  const server = isObject(entry.server) ? entry.server : entry;
  const name = textOf(server.name, NAME_CHARS_MAX);
  if (name === '') return null;
  const meta = isObject(entry._meta) ? entry._meta['io.modelcontextprotocol.registry/official'] : null;
  const status = isObject(meta) ? meta.status : undefined;
  if (status === 'deleted') return null;
  const repository = isObject(server.repository) ? server.repository : {};
  return {
    name,
    title: textOf(server.title, NAME_CHARS_MAX) || name,
    description: textOf(server.description, TEXT_CHARS_MAX),
    version: textOf(server.version, 60),
    isDeprecated: status === 'deprecated',
    page: [repository.url, server.websiteUrl].map(pageOf).find((page) => page !== null) ?? null,
    ways: [
      ...objectsIn(server.remotes).flatMap((remote) => readRemote(remote) ?? []),
      ...objectsIn(server.packages).flatMap((offered) => readPackage(offered) ?? []),
    ],
  };
}

function readRemote({ type, url, headers, variables }: JsonObject): Way | null {
  const isKnown = type === 'streamable-http' || type === 'sse';
  if (!isKnown || typeof url !== 'string' || url.length > URL_CHARS_MAX || !/^https?:\/\/[^\s"'<>]+$/i.test(url))
    return null;
  const described = isObject(variables) ? variables : {};
  const names = [...new Set([...url.matchAll(/\{([^{}]+)\}/g)].map(([, name]) => name))];
  if (names.length === 0 && !URL.canParse(url)) return null;
  const inputs = objectsIn(headers).filter(({ name }) => typeof name === 'string' && /^[\w-]{1,100}$/.test(name));
  const isFixed = ({ value }: JsonObject) => typeof value === 'string' && !value.includes('{');
  return {
    kind: 'remote',
    url,
    variables: names.slice(0, LIST_MAX).map((name) => toNeededValue(name, described[name], true)),
    headers: inputs.filter((input) => !isFixed(input)).map((input) => toNeededValue(String(input.name), input)),
    fixedHeaders: Object.fromEntries(
      inputs.filter(isFixed).map(({ name, value }) => [String(name), textOf(value, TEXT_CHARS_MAX)]),
    ),
  };
}

function readPackage({ registryType, identifier, version, transport, ...remaining }: JsonObject): Way | null {
  const run = Object.hasOwn(RUNNERS, String(registryType)) ? RUNNERS[String(registryType)] : null;
  const name = textOf(identifier, NAME_CHARS_MAX);
  const isStdio = isObject(transport) && transport.type === 'stdio';
  if (run === null || !isStdio || !PACKAGE.test(name)) return null;
  const { command, args } = run(name, typeof version === 'string' && VERSION.test(version) ? version : '');
  const inputs = objectsIn(remaining.environmentVariables).filter(
    (input) => typeof input.name === 'string' && /^\w{1,100}$/.test(input.name),
  );
  const variables = inputs.map((input) => toNeededValue(String(input.name), input));
  const required = variables.filter(({ isRequired }) => isRequired);
  // A container receives only the variables of its command.
  const passed = command === 'docker' ? required.flatMap((variable) => ['-e', variable.name]) : [];
  return {
    kind: 'command',
    config: {
      command,
      args: [
        ...args.slice(0, 3),
        ...passed,
        ...args.slice(3),
        ...objectsIn(remaining.packageArguments).flatMap(toWords),
      ],
      env: Object.fromEntries(required.map((variable) => [variable.name, `<${variable.name}>`])),
    },
    variables,
  };
}

/** Returns the words of an argument, with values that a person must enter in angle brackets. */
function toWords({ type, name, value, default: fallback, valueHint, isRequired }: JsonObject): string[] {
  const preset = [value, fallback].find((text) => typeof text === 'string');
  const flag = type === 'named' ? textOf(name, NAME_CHARS_MAX) : '';
  if (preset === undefined && isRequired !== true) return [];
  const word =
    textOf(preset, TEXT_CHARS_MAX) || `<${textOf(valueHint, NAME_CHARS_MAX) || flag.replace(/^-+/, '') || 'value'}>`;
  return flag === '' ? [word] : [flag, word];
}

function toNeededValue(name: string, input: unknown, isRequired = false): NeededValue {
  const { description, value, ...described } = isObject(input) ? input : {};
  return {
    name: visible(name, NAME_CHARS_MAX),
    description: [description, value]
      .map((text) => textOf(text, TEXT_CHARS_MAX))
      .filter(Boolean)
      .join(', as '),
    isRequired: isRequired || described.isRequired === true,
  };
}

const objectsIn = (list: unknown, most = LIST_MAX) => (Array.isArray(list) ? list.slice(0, most).filter(isObject) : []);

/** Returns a string for people: cut, and without control characters and direction marks. */
function textOf(value: unknown, charsMax: number): string {
  return typeof value === 'string' ? visible(value.slice(0, charsMax * 4), charsMax).trim() : '';
}

function pageOf(url: unknown): string | null {
  if (typeof url !== 'string' || url.length > URL_CHARS_MAX || !URL.canParse(url)) return null;
  const { protocol, href } = new URL(url);
  return protocol === 'https:' ? href : null;
}
