import { EXTRAS_BYTES_MAX, extrasOf } from '../protocol/session.js';
import { isObject } from '../../platform/text/json.js';
import type { InputRequest } from './bridge/input.js';

const ELICITATION_SINCE = '2025-06-18';
const MODES_SINCE = '2025-11-25';

/** Known capabilities, with modes as `capability.mode`. */
const KNOWN = [
  'elicitation',
  'elicitation.form',
  'elicitation.url',
  'sampling',
  'sampling.tools',
  'sampling.context',
  'roots',
];

/**
 * Returns names of capabilities, with modes, such as `elicitation.url`. They include only capabilities that the client declared, that its
 * revision knows, and that can be served over a stream.
 */
export function capabilityNames(declared: unknown, version: string): string[] {
  return KNOWN.filter((name) => {
    const [capability = '', mode] = name.split('.');
    if (capability === 'elicitation' && version < ELICITATION_SINCE) return false;
    const value = isObject(declared) ? declared[capability] : undefined;
    return isObject(value) && (mode === undefined || (version >= MODES_SINCE && isObject(value[mode])));
  });
}

/**
 * Returns the capabilities of {@link capabilityNames} with all their flags, extensions, and experimental ones. Above 1
 * KB of JSON text, it returns only the names of {@link capabilityNames}.
 */
export function passedCapabilities(declared: unknown, version: string): Record<string, unknown> {
  if (!isObject(declared)) return {};
  const names = capabilityNames(declared, version);
  // Upstream sessions are of the newest revision, in which a flag of an older client could have another meaning.
  const flagsOf = (name: string) => (version < MODES_SINCE && name !== 'roots' ? {} : declared[name]);
  const requested = names.filter((name) => !name.includes('.')).map((name) => [name, flagsOf(name)] as const);
  const passed = { ...Object.fromEntries(requested), ...extrasOf(declared) };
  return Buffer.byteLength(JSON.stringify(passed)) > EXTRAS_BYTES_MAX ? (capabilitiesOf(names) ?? {}) : passed;
}

/** Inverts {@link capabilityNames}; returns null without any capabilities. */
export function capabilitiesOf(names: readonly string[]): Record<string, unknown> | null {
  const capabilities: Record<string, Record<string, unknown>> = {};
  for (const name of names) {
    const [capability = '', mode] = name.split('.');
    const modes = (capabilities[capability] ??= {});
    if (mode !== undefined) modes[mode] = {};
  }
  return names.length === 0 ? null : capabilities;
}

export function takesPages(names: readonly string[]): boolean {
  return names.includes('elicitation.url');
}

/**
 * Returns true if the client declared support for such a request. An elicitation capability without a mode means
 * forms.
 */
export function canAnswer(
  names: readonly string[],
  { method, params }: Pick<InputRequest, 'method' | 'params'>,
): boolean {
  switch (method) {
    case 'elicitation/create':
      if (isPage(params)) return takesPages(names);
      return names.includes('elicitation.form') || (names.includes('elicitation') && !takesPages(names));
    case 'sampling/createMessage':
      return names.includes('sampling');
    case 'roots/list':
      return names.includes('roots');
    default:
      return false;
  }
}

/** Returns true if the params of an elicitation, JSON text, have the mode `url`. */
export function isPage(params: string | undefined): boolean {
  if (!params?.includes('"mode"')) return false;
  const value: unknown = JSON.parse(params);
  return isObject(value) && value.mode === 'url';
}
