/*
 * A person with a real browser (Chromium) who lets an MCP client in: the page of `/authorize`, the sign-in with an API key,
 * the consent, and the page of the client to which the browser returns. `/me/access` ends it.
 */
import type { Page } from 'playwright-core';

/**
 * Opens the address that a client wants opened, signs in where that is asked, and allows the client.
 *
 * @param key API key without scopes of the person
 * @returns the text of the consent page, and the address to which the browser returned
 */
export async function letIn(page: Page, authorizeUrl: string, key: string): Promise<{ asked: string; back: URL }> {
  await page.goto(authorizeUrl);
  const other = page.getByText('Use an API key instead');
  if (await other.isVisible()) {
    await other.click();
    await page.getByLabel('API key').fill(key);
    await page.getByRole('button', { name: 'Sign in with this key' }).click();
  }
  const allow = page.getByRole('button', { name: 'Allow', exact: true });
  await allow.waitFor();
  const asked = await page.getByRole('main').innerText();
  // The program behind the redirect may answer with a page or with nothing at all: its address is what counts.
  const { origin } = new URL(page.url());
  const returned = page.waitForRequest((request) => {
    const url = new URL(request.url());
    return request.isNavigationRequest() && url.origin !== origin && url.searchParams.has('code');
  });
  await allow.click();
  const back = new URL((await returned).url());
  await page.waitForLoadState().catch(() => undefined);
  return { asked, back };
}

/** Ends everything that the signed-in person of the page let in. @returns how many entries there were */
export async function endAllAccess(page: Page, origin: string): Promise<number> {
  await page.goto(`${origin}/me/access`);
  const end = page.getByRole('button', { name: 'End access' });
  const count = await end.count();
  for (let remaining = count; remaining > 0; remaining -= 1) {
    await end.first().click();
    await page
      .getByRole('button', { name: 'End access' })
      .nth(remaining - 1)
      .waitFor({ state: 'detached' });
  }
  return count;
}
