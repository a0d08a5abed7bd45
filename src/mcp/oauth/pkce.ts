/** Issuers that support PKCE with S256 and do not announce it: Microsoft Entra ID and Amazon Cognito. */
const KNOWN_ISSUERS = [
  'https://login.microsoftonline.com/*',
  'https://sts.windows.net/*',
  'https://cognito-idp.*.amazonaws.com/*',
];

/**
 * True when the issuer is one that supports PKCE with S256 although its metadata does not say so. In a pattern, `*` stands
 * for one label of the host, or for anything in the path: a `*` that reached across dots and slashes could be met by a host
 * of somebody else.
 *
 * @param patterns issuer URLs, e.g. `https://login.microsoftonline.com/*`; null for the built-in list
 */
export function isPkceKnown(issuer: string, patterns: readonly string[] | null): boolean {
  return (patterns ?? KNOWN_ISSUERS).some((pattern) => patternOf(pattern).test(issuer));
}

function patternOf(pattern: string): RegExp {
  const [, origin = '', path = ''] = /^(https?:\/\/[^/]*)(.*)$/.exec(pattern) ?? [];
  const host = origin.split('*').map(escaped).join('[A-Za-z0-9-]+');
  const rest = path.split('*').map(escaped).join('[^?#\\\\@]*');
  return new RegExp(`^${host}${rest.replace(/\/$/, '')}/?$`);
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
