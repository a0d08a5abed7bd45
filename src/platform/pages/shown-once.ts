import type { Vault } from '../vault/vault.js';
import type { OwnCookie } from './browser-cookie.js';

/** Names and values that a page shows once after a redirect, such as a new key: at most 2 KB. */
export type ShownOnce = Readonly<Record<string, string>>;

export const ONCE_COOKIE = 'once';

const SECONDS = 300;

/** A page sends it after showing the values. */
export const NOTHING_LEFT: OwnCookie = { name: ONCE_COOKIE, value: '', seconds: 0 };

/** Returns a cookie that only this account can open, on this page. @param path of the page, without its query */
export function sealedOnce(vault: Vault, accountId: string, path: string, value: ShownOnce): OwnCookie {
  return { name: ONCE_COOKIE, value: vault.seal(JSON.stringify(value), ownerOf(accountId, path)), seconds: SECONDS };
}

/** Returns the value of the cookie; null without one, and for that of another account or page. */
export function openOnce(vault: Vault, accountId: string, path: string, sealed: string | undefined): ShownOnce | null {
  if (!sealed) return null;
  try {
    return JSON.parse(vault.open(sealed, ownerOf(accountId, path))) as ShownOnce;
  } catch {
    return null;
  }
}

function ownerOf(accountId: string, path: string): string {
  return `once ${accountId} ${path.replace(/^\/|\/$/g, '')}`;
}
