/** The pages of people: sign in, choose a password, one's own page. Words for people who never read the API. */
import { html, type Html } from '../../platform/pages/html.js';
import { page, type Page, type PageEnv } from '../../platform/pages/page.js';

/** The page of `/login`. `name` and `next` are kept after an error. */
export interface LoginView {
  token: Html;
  next: string | null;
  name: string;
  fault: string | null;
}

/** The sign-in page, with a form for a password and one for an API key. */
export function loginPage(env: PageEnv, { token, next, name, fault }: LoginView): Page {
  const hidden = html`${token}${next !== null && html`<input type="hidden" name="next" value="${next}">`}`;
  return page(
    env,
    'Sign in',
    html`${faultOf(fault)}
<form method="post" action="login">${hidden}
<p><label for="name">Account</label>
<input id="name" name="name" value="${name}" autocomplete="username" autocapitalize="none" spellcheck="false" required></p>
<p><label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required></p>
<button type="submit">Sign in</button></form>
<p class="soft">No account or no password? The operator of this service sends you an invitation link.</p>
<h2>Sign in with an API key</h2>
<form method="post" action="login">${hidden}
<p><label for="key">API key</label>
<span id="keyh" class="hint">A key with all rights of its account. You are signed in for as long as the key is valid.</span>
<input id="key" name="key" aria-describedby="keyh" type="password" autocomplete="off" spellcheck="false" required></p>
<button type="submit">Sign in with this key</button></form>`,
  );
}

/** The sentence above a form that was refused. */
function faultOf(fault: string | null): Html | null {
  return fault === null ? null : html`<p role="alert" class="fault">${fault}</p>`;
}
