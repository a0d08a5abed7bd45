/** The one spelling under which an upstream's address is stored and looked up: as URLs are normalised, without fragment. */
export function upstreamAddress(url: string): string {
  const { href, hash } = new URL(url);
  return hash === '' ? href : href.slice(0, -hash.length);
}
