/** Issuers that support PKCE with S256 and do not announce it: Microsoft Entra ID and Amazon Cognito. */
const KNOWN_ISSUERS = [
  'https://login.microsoftonline.com/*',
  'https://sts.windows.net/*',
  'https://cognito-idp.*.amazonaws.com/*',
];

/**
 * Returns true if a pattern matches the issuer. In a pattern, `*` matches one host label, or any path; if `*` matched dots or slashes, it could match a foreign host.
 *
 * @param patterns issuer URLs, such as `https://login.microsoftonline.com/*`; null for the built-in list
 */
export function isPkceKnown(issuer: string, patterns: readonly string[] | null): boolean {
  return (patterns ?? KNOWN_ISSUERS).some((pattern) => {
    const [, origin = '', path = ''] = /^(https?:\/\/[^/]*)(.*)$/.exec(pattern) ?? [];
    const host = origin.split('*').map(escapeRegExp).join('[A-Za-z0-9-]+');
    const rest = path.split('*').map(escapeRegExp).join('[^?#\\\\@]*');
    return new RegExp(`^${host}${rest.replace(/\/$/, '')}/?$`).test(issuer);
  });
}

function escapeRegExp(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
