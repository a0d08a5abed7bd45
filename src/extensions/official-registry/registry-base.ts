import { type Env, StartError } from '../../extension.js';

export const REGISTRY_BASE = Symbol('base of the official registry');

const DEFAULT_BASE = 'https://registry.modelcontextprotocol.io';

/**
 * Returns the URL in front of `/v0.1/servers`, from `OFFICIAL_REGISTRY_URL`. Not a setting by `defineModule`, since Zod takes 15 MB
 * and this module is loaded by default.
 *
 * @throws StartError
 */
export function registryBase({ source }: Env): string {
  const base = source.OFFICIAL_REGISTRY_URL?.trim() || DEFAULT_BASE;
  if (!isBase(base)) {
    throw new StartError('OFFICIAL_REGISTRY_URL is not valid: expected "off" or a URL without user name, "?" and "#".');
  }
  return base.replace(/\/+$/, '');
}

function isBase(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password } = new URL(text);
  return /^https?:$/.test(protocol) && username === '' && password === '' && !/[?#]/.test(text);
}
