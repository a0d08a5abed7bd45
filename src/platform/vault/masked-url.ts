const MASK = '***';

/** True for a URL with a query: it can contain keys, so it is stored sealed. */
export function hasQuery(url: string): boolean {
  return /^[^#?]*\?[^#]/.test(url);
}

/** The URL with `***` instead of each value of its query, and of each parameter without `=`. Names remain. */
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
