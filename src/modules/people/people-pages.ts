/** The pages of people: sign in, choose a password, one's own page. Words for people who never read the API. */
import type { Framed } from '../../platform/pages/frame.js';
import { html, type Html } from '../../platform/pages/html.js';
import { page, type Page, type PageEnv } from '../../platform/pages/page.js';
import { timeOf } from '../../platform/pages/times.js';
import { keyLevels, type Role, type SessionCaller } from '../auth/access.types.js';
import type { MembersService } from '../auth/members.service.js';
import type { ApiKeysService } from '../auth/api-keys.service.js';
import type { ShownSession } from './people.repository.js';
import { PASSWORD_CHARS_MIN } from './passwords.service.js';

/** The page of `/` for who is not signed in. @param guides the pages of the documentation */
export function startPage(env: PageEnv, guides: { path: string; title: string }[]): Page {
  return page(
    env,
    'MCP servers',
    html`<p>This service connects apps to MCP servers: it lists servers, runs them, and keeps the connections to them. It is an
installation of Slipway.</p>
<p><a href="login">Sign in</a></p>
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
  /** Address of the form; `login` by default. */
  action?: string;
  /** Name of the app that wants to act for the person. */
  app?: string;
}

/** The sign-in page, with a form for a password and one for an API key. */
export function loginPage(env: PageEnv, { token, next, name, fault, action = 'login', app }: LoginView): Page {
  const hidden = html`${token}${next !== null && html`<input type="hidden" name="next" value="${next}">`}`;
  return page(
    env,
    'Sign in',
    html`${app !== undefined && html`<p>The app <strong>${app}</strong> asks to act for you. Sign in to decide.</p>`}${faultOf(fault)}
<form method="post" action="${action}">${hidden}
<p><label for="name">Account</label>
<input id="name" name="name" value="${name}" autocomplete="username" autocapitalize="none" spellcheck="false" required></p>
<p><label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required></p>
<button type="submit">Sign in</button></form>
<p class="soft">No account or no password? The operator of this service sends you an invitation link.</p>
<h2>Sign in with an API key</h2>
<form method="post" action="${action}">${hidden}
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

/** The page of an invitation into an organization. */
export interface JoinView {
  token: Html;
  organization: string;
  role: Role;
  /** The person who is signed in; null for nobody. */
  person: SessionCaller | null;
  /** The name in the form. */
  name: string;
  fault: string | null;
  /** Path and query of the page. */
  next: string;
}

/** The page on which a person joins an organization: with a button who is signed in, everybody else with a new account. */
export function joinPage(env: PageEnv, { token, organization, role, person, name, fault, next }: JoinView): Page {
  return page(
    env,
    'Join an organization',
    html`<p>You are invited to the organization <strong>${organization}</strong>, as ${role}.</p>
${faultOf(fault)}
<form method="post">${token}
${person ? html`<p>You are signed in as <strong>${person.accountName}</strong>.</p>` : newAccountInputs(name, next)}
<button type="submit">Join</button></form>`,
  );
}

function newAccountInputs(name: string, next: string): Html {
  return html`<p>If you have an account, <a href="login?next=${encodeURIComponent(next)}">sign in</a>. Otherwise choose a name and a
password for a new one.</p>
<p><label for="name">Account</label>
<input id="name" name="name" value="${name}" autocomplete="username" autocapitalize="none" spellcheck="false" required></p>
${newPasswordInputs()}`;
}

/** The page `/me`. */
export interface MeView {
  token: Html;
  accountName: string;
  isOperator: boolean;
  /** Way to `/`. */
  root: string;
  sessions: ShownSession[];
  /** Id of the session of this browser. */
  keyId: string;
  apiKeys: Awaited<ReturnType<ApiKeysService['list']>>['apiKeys'];
  memberships: Awaited<ReturnType<MembersService['organizationsOf']>>['memberships'];
  /** Names of the namespaces that a key may be limited to. */
  namespaces: string[];
  /** The key that was made just now; shown once. */
  made: { name: string; key: string } | null;
  /** The form of a key that was refused, and why. */
  refusedKey: { form: URLSearchParams; fault: string } | null;
  /** The API key that the session began with; undefined for a password. */
  rootKeyId?: string;
  /** The sentence of what was done just now. */
  notice: string | null;
  fault: string | null;
}

/** A person's own page. */
export function mePage(view: MeView): Framed {
  const { token, root, accountName, isOperator, rootKeyId, sessions, memberships, notice, fault } = view;
  const browsers = sessions.length === 1 ? 'this one only' : `${sessions.length}, this one included`;
  return {
    title: 'Your account',
    notice,
    asRequest: '/accounts/me',
    body: html`<section>
<dl>
<div><dt>You are signed in as</dt><dd><strong>${accountName}</strong>${isOperator && ', the operator of this service'}</dd></div>
<div><dt>Browsers that are signed in</dt><dd>${browsers}</dd></div>
</dl>
<p><a href="${root}me/access">Apps that may act for you</a></p></section>
${
  memberships.length > 0 &&
  html`<section aria-labelledby="organizations"><h2 id="organizations">Organizations</h2>
<ul>${memberships.map(
    ({ organizationName, role }) =>
      html`<li><a href="${root}ui/o/${encodeURIComponent(organizationName)}">${organizationName}</a>: your role is ${role}</li>\n`,
  )}</ul></section>`
}
${keysSection(view)}
${browsersSection(view)}
<section><h2>Password</h2>
${faultOf(fault)}
${rootKeyId === undefined ? passwordForm(token, accountName, root) : inviteHint(isOperator)}</section>`,
  };
}

function keysSection({ token, root, apiKeys, namespaces, made: newKey, refusedKey }: MeView): Html {
  const typed = refusedKey?.form;
  const scopes = typed?.getAll('scope') ?? [];
  const tick = (scope: string, label: string) =>
    html`<label class="hint"><input type="checkbox" name="scope" value="${scope}"${scopes.includes(scope) && html` checked`}>${label}</label>`;
  const action = `${root}me/keys`;
  const rows = apiKeys.map(({ id, name, prefix, scopes: rights, expiresAt, lastUsedAt, replacedBy }) => {
    const act = (word: string, label: string) => html`<form method="post" action="${action}/${word}">${token}
<input type="hidden" name="key" value="${id}"><button class="plain" aria-label="${label}: ${name}">${label}</button></form>`;
    return html`<li><div><strong>${name}</strong> <code>${prefix}…</code>
<span class="hint">${rights?.join(', ') ?? 'all rights of your account'}; ${expiresAt === null ? 'never expires' : html`expires ${timeOf(expiresAt)}`};
 ${lastUsedAt === null ? 'never used' : html`last used ${timeOf(lastUsedAt)}`}${replacedBy !== null && '; replaced by another one'}</span></div>
<div>${replacedBy === null && act('rotate', 'Rotate')}${act('revoke', 'Revoke')}</div></li>\n`;
  });
  return html`<section aria-labelledby="keys"><h2 id="keys">API keys</h2>
${
  newKey &&
  html`<p role="status">The key <strong>${newKey.name}</strong>, shown this once: <code id="new-key">${newKey.key}</code>
<button type="button" class="plain" data-copy="new-key" hidden>Copy</button></p>`
}
<ul class="rows">${rows}</ul>
<form method="post" action="${action}/create">${token}<h3>Create a key</h3>
<p><label for="key-name">Name</label>
${refusedKey && html`<span id="key-fault" role="alert" class="fault">${refusedKey.fault}</span>`}
<input id="key-name" name="name" value="${typed?.get('name') ?? ''}" maxlength="255" required${refusedKey && html` aria-describedby="key-fault" autofocus`}></p>
<p><label for="key-days">Days until it expires</label>
<input id="key-days" name="days" type="number" min="1" max="3650" value="${typed?.get('days') ?? '90'}" required></p>
<fieldset><legend>It may</legend>
<p>${tick('all', 'do everything that your account may do')}</p>
<p>In all namespaces: ${keyLevels.map((level) => tick(level, level))}</p>
${namespaces.map((name) => html`<p>In ${name}: ${keyLevels.map((level) => tick(`${level}:${name}`, level))}</p>`)}</fieldset>
<button>Create the key</button></form></section>`;
}

function browsersSection({ token, root, sessions, keyId }: MeView): Html {
  return html`<section aria-labelledby="browsers"><h2 id="browsers">Browsers</h2><ul class="rows">${sessions.map(
    ({
      id,
      agent,
      address,
      createdAt,
      lastUsedAt,
    }) => html`<li><div><strong>${agent === '' ? 'a browser without a name' : agent}</strong>${id === keyId && ' (this one)'}
<span class="hint">from ${address}, signed in ${timeOf(createdAt.toISOString())}, last used ${timeOf(lastUsedAt.toISOString())}</span></div>
${
  id !== keyId &&
  html`<form method="post" action="${root}me/browsers">${token}<input type="hidden" name="browser" value="${id}">
<button class="plain" aria-label="Sign out ${agent}">Sign out</button></form>`
}</li>\n`,
  )}</ul>
<form method="post" action="${root}logout">${token}<input type="hidden" name="everywhere" value="yes">
<button type="submit">Sign out in all browsers</button></form></section>`;
}

function inviteHint(isOperator: boolean): Html {
  return isOperator
    ? html`<p>You signed in with an API key, which sets no password. For a link to choose one, run
<code>npm run keys -- --invite operator</code> on the machine of the service.</p>`
    : html`<p>You signed in with an API key, which sets no password. For a link to choose one, ask the operator of this service for an
invitation.</p>`;
}

function passwordForm(token: Html, accountName: string, root: string): Html {
  return html`<form method="post" action="${root}me">${token}
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
