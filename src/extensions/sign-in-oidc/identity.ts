/**
 * A person at the issuer. Only issuer and subject identify the person: names and addresses change and are reassigned.
 */
export interface Identity {
  issuer: string;
  subject: string;
  name: string;
  accountName: string;
  /** The domain of the company or of a verified e-mail address, in lower case; null without one. */
  domain: string | null;
}

/** Claims of an ID token, or of a response of the userinfo endpoint. */
export type Claims = Record<string, unknown> & { iss: string; sub: string };

export const GOOGLE = 'https://accounts.google.com';

const NAME_CHARS_MAX = 200;

export function identityOf(claims: Claims): Identity {
  const names = ['preferred_username', 'email', 'nickname', 'name'].map((claim) => textIn(claims, claim));
  const name = names.find((text) => text !== null) ?? claims.sub;
  const [accountName = ''] = (name === claims.sub ? 'user' : name).toLowerCase().split('@');
  const shownName = (textIn(claims, 'email') ?? name).slice(0, NAME_CHARS_MAX).toWellFormed();
  return { issuer: claims.iss, subject: claims.sub, name: shownName, accountName, domain: domainOf(claims) };
}

/**
 * Returns the domain that the issuer vouches for. Google verifies an address once, and the company (`hd`) each time.
 * Entra ID has `xms_edov` in place of `email_verified`, for a tenant that owns the domain.
 */
function domainOf(claims: Claims): string | null {
  if (claims.iss === GOOGLE) return textIn(claims, 'hd')?.toLowerCase() ?? null;
  const isVerified = [claims.email_verified, claims.xms_edov].some((value) =>
    [true, 'true', 1, '1'].includes(value as string),
  );
  const email = textIn(claims, 'email');
  return isVerified && email?.includes('@') ? email.slice(email.lastIndexOf('@') + 1).toLowerCase() : null;
}

function textIn(claims: Claims, name: string): string | null {
  const value = claims[name];
  return (typeof value === 'string' && value.replace(/\p{C}/gu, '').trim()) || null;
}
