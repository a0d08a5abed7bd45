import {
  CallerLeftError,
  NotHostedError,
  UpstreamAuthRequiredError,
  UpstreamBusyError,
  UpstreamError,
  UpstreamFailure,
  UpstreamTimeoutError,
} from '../../protocol/mcp-errors.js';

/** The same failure in words that name the server and no address. What is no failure of an upstream stays as it is. */
export function withHiddenAddress(error: Error, upstream: URL, name: string): Error {
  const isNameless =
    error instanceof CallerLeftError ||
    error instanceof UpstreamAuthRequiredError ||
    error instanceof UpstreamBusyError ||
    error instanceof NotHostedError;
  if (!(error instanceof UpstreamFailure) || isNameless) return error;
  const message = withoutAddress(error.message, upstream, name);
  if (error instanceof UpstreamTimeoutError) return new UpstreamTimeoutError(message, error.outcomeUnknown, error);
  return new UpstreamError(message, error, error.outcomeUnknown);
}

/**
 * The text with `name` where it named the upstream. Where a release runs is its owner's to know, and the path of an
 * upstream may be a secret; callers may be anybody.
 */
export function withoutAddress(text: string, { origin, pathname, host, hostname }: URL, name: string): string {
  const named = (rest: string, address: string) => {
    const escaped = address.replace(/\W/g, '\\$&');
    return rest.replace(new RegExp(`(?<![\\w./-])"?${escaped}"?(?![\\w/-])`, 'g'), () => name);
  };
  const withoutUrls = named(text, `${origin}${pathname}`).replace(/https?:\/\/\S*[^\s.:,]/g, 'another address');
  return [host, hostname].reduce(named, withoutUrls);
}
