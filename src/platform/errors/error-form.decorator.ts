/**
 * Selects the contract's error body (Spec 7) of a path. The controller of a first path segment declares it with
 * `@ErrorForm`, including paths under the segment that no route matches. Everything else has the one-field body,
 * `registry`.
 *
 * - `registry`: `{error: message}`
 * - `connections`: `{error: code, message}`
 * - `publishing`: `{error: message, code: CODE}`
 * - `json-rpc`: a JSON-RPC error
 */
export type ErrorFamily = 'registry' | 'connections' | 'publishing' | 'json-rpc';

/** @param path canonical @param method in capitals */
type FamilyOf = (path: string, method: string) => ErrorFamily;

const forms = new Map<string, FamilyOf>();

export function ErrorForm(segment: string, family: FamilyOf): ClassDecorator {
  return () => void forms.set(segment, family);
}

/**
 * Returns the family of errors of a path, even for requests that never reach a route.
 *
 * @param method in any case; without one the path is read, not written
 */
export function familyOf(path: string, method = 'GET'): ErrorFamily {
  const end = path.indexOf('/', 1);
  const form = forms.get(end < 0 ? path.slice(1) : path.slice(1, end));
  return form ? form(path, method.toUpperCase()) : 'registry';
}
