import { Transform } from 'class-transformer';
import { parseUrl } from '../../../config/parse-url.js';
import { storableFault } from '../../../platform/database/storable.js';
import { HEADER_VALUE } from '../../../platform/http/header-value.js';
import { checkWith } from '../../../platform/http/input-values.js';
import { isObject } from '../../../platform/text/json.js';
import type { QueryValues } from './connection.entity.js';

const URL_CHARS_MAX = 2048;

/** Maximum size of metadata, or tool names, of one connection: every list response contains them. */
const DETAIL_BYTES_MAX = 16 * 1024;

/** Maximum size of headers, or query values, of one connection: every request sends them. */
const VALUES_BYTES_MAX = 8 * 1024;

/** A token of RFC 9110. */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/;

/** A scope of RFC 6749 appendix A.4. */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/;

/** Headers that MCP or Slipway sets, or that change the framing or routing of a request. */
const OWN_HEADERS =
  /^(?:host|connection|keep-alive|content-.*|transfer-encoding|te|trailer|upgrade|expect|accept(?:-encoding)?|proxy-.*|mcp-(?!server).*|last-event-id|x-request-id)$/i;

type Fault = string | null;

function urlFault(value: unknown): Fault {
  const url = typeof value === 'string' ? parseUrl(value) : null;
  if (typeof value !== 'string' || !url) return 'must be a URL such as https://example.com/mcp';
  if (value.length > URL_CHARS_MAX) return `must be at most ${URL_CHARS_MAX} characters`;
  // eslint-disable-next-line no-control-regex -- control characters are what it looks for
  if (/[\u0000-\u0020\u007f\\]/.test(value)) return 'must not hold blanks, control characters or backslashes';
  if (!value.isWellFormed()) return 'must not hold broken unicode';
  const { protocol, username, password, hash } = url;
  if (protocol !== 'http:' && protocol !== 'https:') return 'must start with https:// or http://';
  if (username || password) return 'must not hold a user name or password: send credentials in headers';
  return hash ? 'must not have a fragment' : null;
}

function detailFault(value: object): Fault {
  const fault = storableFault(value);
  if (fault !== null) return fault;
  const bytes = Buffer.byteLength(JSON.stringify(value));
  return bytes > DETAIL_BYTES_MAX ? `must be at most ${DETAIL_BYTES_MAX} bytes of JSON` : null;
}

function metadataFault(value: unknown): Fault {
  return isObject(value) ? detailFault(value) : 'must be an object';
}

/** @returns `reserved` if MCP or Slipway sets the header; null for a valid name */
export function headerNameFault(name: string): 'invalid' | 'reserved' | null {
  if (!HEADER_NAME.test(name)) return 'invalid';
  return OWN_HEADERS.test(name) ? 'reserved' : null;
}

/** @returns the end of a message; null for valid headers */
export function headersFault(value: unknown): Fault {
  if (!isObject(value)) return 'must be an object of strings';
  const names = new Set<string>();
  for (const [name, text] of Object.entries(value)) {
    const fault = headerNameFault(name);
    if (fault === 'invalid') return `must hold valid header names; "${name.slice(0, 40)}" is not valid`;
    if (fault === 'reserved') return `must not hold "${name}": Slipway sets it`;
    if (names.has(name.toLowerCase())) return `must hold each header once; "${name}" occurs twice`;
    names.add(name.toLowerCase());
    if (typeof text !== 'string' || !HEADER_VALUE.test(text)) {
      return `must hold header values of visible ASCII characters; the value of "${name}" is not valid`;
    }
  }
  const bytes = JSON.stringify(value).length;
  return bytes > VALUES_BYTES_MAX ? `must be at most ${VALUES_BYTES_MAX} bytes together` : null;
}

export function queryFault(query: QueryValues): Fault {
  const bytes = Buffer.byteLength(JSON.stringify(query));
  return bytes > VALUES_BYTES_MAX ? `must be at most ${VALUES_BYTES_MAX} bytes together` : null;
}

function toolPatternsFault(value: unknown): Fault {
  if (!Array.isArray(value)) return 'must be a list of tool names';
  if (!value.every((tool) => typeof tool === 'string' && tool !== '')) {
    return 'must hold names, or beginnings such as "search_*"';
  }
  return detailFault(value);
}

function scopesFault(value: unknown): Fault {
  const isList = Array.isArray(value) && value.length > 0 && value.length <= 100;
  if (!isList || !value.every((scope) => typeof scope === 'string' && SCOPE.test(scope))) {
    return 'must be a list of 1 to 100 scopes such as "tools:read"';
  }
  return null;
}

export const IsMcpUrl = checkWith('isMcpUrl', urlFault);

export const IsMetadata = checkWith('isMetadata', metadataFault);

/** The message names the header, never its value. */
export const IsHeaders = checkWith('isHeaders', headersFault);

export const IsToolPatterns = checkWith('isToolPatterns', toolPatternsFault);

export const IsScopes = checkWith('isScopes', scopesFault);

export const IsStorableText = checkWith('isStorableText', storableFault);

/** Keeps the value as sent: the transformation of bodies drops members such as `toString`. */
export function AsGiven(): PropertyDecorator {
  return Transform(({ obj, key }) => (obj as Record<string, unknown>)[key]);
}
