/** Returns the URL of a string, or null. Not `URL.canParse`: on Node 20 its optimised form rejects valid international hosts. */
export function parseUrl(text: string, base?: string | URL): URL | null {
  try {
    return new URL(text, base);
  } catch {
    return null;
  }
}
