const MASK = '***';

/** Returns true for a URL with a query, which can contain keys: the URL is then stored encrypted. */
export function hasQuery(url: string): boolean {
  return /^[^#?]*\?[^#]/.test(url);
}

/** Replaces each value of the query, and each parameter without `=`, by `***`. Names remain. */
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
