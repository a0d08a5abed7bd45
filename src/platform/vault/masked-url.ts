const MASK = '***';

/** A query can contain keys, so the URL is stored sealed. */
export function hasQuery(url: string): boolean {
  return /^[^#?]*\?[^#]/.test(url);
}

/** `***` replaces each value of the query, and each parameter without `=`. Names remain. */
export function maskedQuery(url: string): string {
  const [, before, query, after] = /^([^#?]*\?)([^#]*)(.*)$/s.exec(url) ?? [];
  if (query === undefined) return url;
  const masked = query.split('&').map((part) => {
    if (part === '') return '';
    const [name, value] = part.split(/=(.*)/s);
    return value === undefined ? MASK : `${name}=${MASK}`;
  });
  return before + masked.join('&') + after;
}
