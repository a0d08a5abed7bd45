/** The filters of a namespace's connections in the address of the page, named as in REST. */

export const STATES = {
  auth_required: 'Needs a login',
  input_required: 'Needs a value',
  error: 'Does not work',
  disconnected: 'Not connected',
  connected: 'Works',
} as const;

export interface ConnectionFilters {
  state?: keyof typeof STATES;
  name?: string;
  metadata: { key: string; value: string }[];
}

const PREFIX = 'metadata.';
const NAME_CHARS_MAX = 255;

const METADATA_MAX = 16;

/** Returns the filters of an address, without values that no connection can have. */
export function filtersIn(query: Record<string, unknown>): ConnectionFilters {
  const { state, name } = query;
  const metadata = Object.entries(query).flatMap(([key, value]) =>
    key.startsWith(PREFIX) && key !== PREFIX && typeof value === 'string'
      ? [{ key: storable(key.slice(PREFIX.length)), value: storable(value) }]
      : [],
  );
  return {
    ...(typeof state === 'string' && Object.hasOwn(STATES, state) && { state: state as keyof typeof STATES }),
    ...(typeof name === 'string' && name !== '' && { name: storable(name).slice(0, NAME_CHARS_MAX) }),
    metadata: metadata.slice(0, METADATA_MAX),
  };
}

/** Returns filters that were entered as `plan=pro, userId=u-1`; null without any. */
export function metadataIn(typed: unknown): ConnectionFilters['metadata'] | null {
  if (typeof typed !== 'string') return null;
  return typed.split(',').flatMap((part) => {
    const [, key, value] = /^\s*([^=]*[^=\s])\s*=\s*(.*?)\s*$/s.exec(part) ?? [];
    return key === undefined || value === undefined ? [] : [{ key, value }];
  });
}

export function queryOf({ state, name, metadata }: ConnectionFilters, more: Record<string, string> = {}): string {
  const ofMetadata = metadata.map(({ key, value }): [string, string] => [PREFIX + key, value]);
  const entries = [...Object.entries({ ...(state && { state }), ...(name !== undefined && { name }) }), ...ofMetadata];
  return new URLSearchParams([...entries, ...Object.entries(more)]).toString();
}

function storable(text: string): string {
  return text.replaceAll('\0', '\ufffd').toWellFormed();
}
