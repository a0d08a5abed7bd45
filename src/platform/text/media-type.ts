/** Media types (RFC 9110, 8.3.1) are compared without parameters, white space and case. */

/** Returns the media type in lower case: the first of several, empty without one. */
export function mediaTypeOf(value: string | undefined): string {
  if (value === undefined) return '';
  const end = value.search(/[;,]/);
  return (end < 0 ? value : value.slice(0, end)).trim().toLowerCase();
}

/**
 * Returns true if an `Accept` header accepts this type, by its name or a wildcard; the most exact range decides (RFC
 * 9110, 12.5.1). Returns false without the header.
 */
export function acceptsType(accept: string | undefined, type: string): boolean {
  const ranges = [type, type.replace(/[^/]*$/, '*'), '*/*'];
  const range = ranges.find((wildcard) => accept?.split(',').some((each) => mediaTypeOf(each) === wildcard));
  return range !== undefined && namesType(accept, range);
}

/** Returns true if an `Accept` header names exactly this type, and not with `q=0`. Wildcards name no type. */
export function namesType(accept: string | undefined, type: string): boolean {
  if (accept === undefined) return false;
  return accept.split(',').some((range) => mediaTypeOf(range) === type && !/;\s*q\s*=\s*0(?:\.0*)?\s*$/i.test(range));
}
