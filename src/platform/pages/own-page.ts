/**
 * A second wall behind the SameSite cookie: the button of a page of somebody else, also on a neighbouring host, does
 * nothing. Browsers that say nothing about it pass.
 *
 * @param site the `Sec-Fetch-Site` header
 * @throws what `refusal` makes
 */
export function requireOwnPage(site: string | undefined, refusal: () => Error): void {
  if (site !== undefined && site !== 'same-origin') throw refusal();
}
