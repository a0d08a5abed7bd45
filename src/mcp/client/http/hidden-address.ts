import { UpstreamError, UpstreamFailure, UpstreamTimeoutError, withoutWords } from '../../protocol/mcp-errors.js';

/**
 * Replaces the upstream's address by the server's name, and removes the server's own message. Other errors are returned
 * unchanged.
 */
export function withHiddenAddress(error: Error, upstream: URL, name: string): Error {
  if (!(error instanceof UpstreamFailure) || !error.row.namesAddress) return error;
  const message = withoutAddress(withoutWords(error.message), upstream, name);
  if (error instanceof UpstreamTimeoutError) return new UpstreamTimeoutError(message, error.outcomeUnknown, error);
  const status = error instanceof UpstreamError ? error.status : null;
  return new UpstreamError(message, { detail: error, outcomeUnknown: error.outcomeUnknown, status });
}

/**
 * Removes the address of an upstream. Only the owner can see where a release runs, and the path of an upstream may contain a secret; callers may be
 * anonymous.
 */
export function withoutAddress(text: string, { origin, pathname, host, hostname }: URL, name: string): string {
  const hide = (rest: string, address: string) => {
    const escaped = address.replace(/\W/g, '\\$&');
    return rest.replace(new RegExp(`(?<![\\w./-])"?${escaped}"?(?![\\w/-])`, 'g'), () => name);
  };
  const withoutUrls = hide(text, `${origin}${pathname}`).replace(/https?:\/\/\S*[^\s.:,]/g, 'another address');
  return [host, hostname].reduce(hide, withoutUrls);
}
