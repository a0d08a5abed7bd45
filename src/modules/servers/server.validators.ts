import { ValidateBy } from 'class-validator';
import { parseUrl } from '../../config/parse-url.js';
import { parseHostPattern } from '../../platform/egress/address-policy.js';
import { InvalidInputError } from '../../platform/errors/domain-error.js';
import { checkWith } from '../../platform/http/input-values.js';
import { SERVER_NAME, SERVER_SUBRESOURCES } from '../../platform/http/resource-names.js';

/** Maximum length of a URL, including percent-encoding, as a repository's owner and name are stored and indexed. */
const URL_CHARS_MAX = 2048;

export const SECRET_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;

function webUrlFault(value: unknown): string | null {
  const url = typeof value === 'string' ? parseUrl(value) : null;
  if (typeof value !== 'string' || !url) return 'must be a URL such as https://example.com';
  if (Math.max(value.length, url.href.length) > URL_CHARS_MAX) {
    return `must be at most ${URL_CHARS_MAX} characters, with percent-encoding`;
  }
  // eslint-disable-next-line no-control-regex -- control characters are what it looks for
  if (/[\u0000-\u0020\u007f\\]/.test(value)) return 'must not hold blanks, control characters or backslashes';
  if (!value.isWellFormed()) return 'must not hold broken unicode';
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'must start with https:// or http://';
  return url.username || url.password ? 'must not hold a user name or password' : null;
}

/** A web address that pages can link to: http or https, without credentials, at most 2,048 percent-encoded characters. */
export const IsWebUrl = checkWith('isWebUrl', webUrlFault);

/** Accepts a list of hosts that code can reach: `api.example.com`, `*.example.com`, an address, each with or without a port. */
export function IsHostPattern(): PropertyDecorator {
  const message = 'each of $property must be a host such as api.example.com, *.example.com or db.example.com:5432';
  const validate = (value: unknown) => typeof value === 'string' && parseHostPattern(value) !== null;
  return ValidateBy({ name: 'isHostPattern', validator: { validate } }, { each: true, message });
}

/** @throws InvalidInputError for a malformed or reserved name */
export function requireServerName(name: string): void {
  if (name === '') return;
  if (!SERVER_NAME.test(name)) {
    throw new InvalidInputError(
      'server must be 3 to 39 letters, digits, hyphens and underscores, and begin with a letter or digit',
    );
  }
  if (SERVER_SUBRESOURCES.has(name.toLowerCase()))
    throw new InvalidInputError(`"${name}" is reserved: choose another server name`);
}
