/** The pages of people: sign in, choose a password, one's own page. Words for people who never read the API. */
import { html, type Html } from '../../platform/pages/html.js';
import { page, type Page, type PageEnv } from '../../platform/pages/page.js';
import { PASSWORD_CHARS_MIN } from './passwords.service.js';
import type { SignedIn } from './people.types.js';

/**
 * The page of `/`.
 *
 * @param person who is signed in; null for nobody
 * @param guides the pages of the documentation
 */
export function startPage(env: PageEnv, person: SignedIn | null, guides: { path: string; title: string }[]): Page {
  const signIn = person
    ? html`<p>You are signed in as <strong>${person.accountName}</strong>: <a href="me">your account</a></p>`
    : html`<p><a href="login">Sign in</a></p>`;
  return page(
    env,
    'MCP servers',
    html`<p>This service connects apps to MCP servers: it lists servers, runs them, and keeps the connections to them. It is an
installation of Slipway.</p>
${signIn}
<p><a href="docs">API reference</a></p>
<h2>Documentation</h2>
<ul>${guides.map(({ path, title }) => html`<li><a href="${path}">${title}</a></li>`)}</ul>`,
  );
}

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

/** The page of an invitation. */
export interface InvitationView {
  token: Html;
  accountName: string;
  fault: string | null;
}

/** The page on which a person chooses the first password, or a new one. Its form goes to the address of the link. */
export function invitationPage(env: PageEnv, { token, accountName, fault }: InvitationView): Page {
  return page(
    env,
    'Choose a password',
    html`<p>You are invited to this service. Remember the name of your account, and choose a password.</p>
${faultOf(fault)}
<form method="post">${token}
<p><label for="name">Account</label>
<input id="name" value="${accountName}" autocomplete="username" readonly></p>
${newPasswordInputs()}
<button type="submit">Save and sign in</button></form>`,
  );
}

/** The page `/me`. */
export interface MeView {
  token: Html;
  accountName: string;
  isOperator: boolean;
  /** Browsers that are signed in. */
  sessions: number;
  /** The API key that the session began with; null for a password. */
  keyId: string | null;
  /** What was done just now. */
  notice: string | null;
  fault: string | null;
}

/** A person's own page. */
export function mePage(env: PageEnv, { token, accountName, isOperator, keyId, sessions, notice, fault }: MeView): Page {
  const browsers = sessions === 1 ? 'this one only' : `${sessions}, this one included`;
  return page(
    env,
    'Your account',
    html`${notice !== null && html`<p role="status">${notice}</p>`}
<dl>
<div><dt>You are signed in as</dt><dd><strong>${accountName}</strong>${isOperator && ', the operator of this service'}</dd></div>
<div><dt>Browsers that are signed in</dt><dd>${browsers}</dd></div>
</dl>
<p><a href="me/access">Apps that may act for you</a></p>
<form method="post" action="logout">${token}<p><button type="submit">Sign out</button></p></form>
<form method="post" action="logout">${token}<input type="hidden" name="everywhere" value="yes">
<button type="submit">Sign out in all browsers</button></form>
<h2>Password</h2>
${faultOf(fault)}
${keyId === null ? passwordForm(token, accountName) : inviteHint(isOperator)}`,
  );
}

function inviteHint(isOperator: boolean): Html {
  return isOperator
    ? html`<p>You signed in with an API key, which sets no password. For a link to choose one, run
<code>npm run keys -- --invite operator</code> on the machine of the service.</p>`
    : html`<p>You signed in with an API key, which sets no password. For a link to choose one, ask the operator of this service for an
invitation.</p>`;
}

function passwordForm(token: Html, accountName: string): Html {
  return html`<form method="post" action="me">${token}
<input type="hidden" value="${accountName}" autocomplete="username">
<p><label for="old">Present password</label>
<input id="old" name="old" type="password" autocomplete="current-password" required></p>
${newPasswordInputs()}
<p class="hint">All other browsers are signed out, and the apps that may act for you ask you again.</p>
<button type="submit">Save</button></form>`;
}

function newPasswordInputs(): Html {
  return html`<p><label for="password">New password</label>
<span id="passwordh" class="hint">At least ${PASSWORD_CHARS_MIN} characters. A few words are easy to remember.</span>
<input id="password" name="password" type="password" aria-describedby="passwordh" autocomplete="new-password"
 required></p>
<p><label for="repeated">The same again</label>
<input id="repeated" name="repeated" type="password" autocomplete="new-password" required></p>`;
}

/** The sentence above a form that was refused. */
function faultOf(fault: string | null): Html | null {
  return fault === null ? null : html`<p role="alert" class="fault">${fault}</p>`;
}
