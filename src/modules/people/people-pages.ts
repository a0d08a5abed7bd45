import {
  actions,
  badge,
  button,
  buttonLink,
  card,
  columns,
  details,
  empty,
  list,
  notice as noticeAs,
  table,
  tile,
  who,
} from '../../platform/pages/components.js';
import type { AccountLimits } from '../../config/account-limits.js';
import { formOf, withReason, type Field, type FormsView, type RejectedForm } from '../../platform/pages/forms.js';
import type { Framed } from '../../platform/pages/frame.js';
import { html, type Html } from '../../platform/pages/html.js';
import { page, type Page, type PageEnv } from '../../platform/pages/page.js';
import type { ShownOnce } from '../../platform/pages/shown-once.js';
import { timeOf } from '../../platform/pages/times.js';
import type { Role, SessionCaller } from '../auth/access.types.js';
import type { MembersService } from '../auth/members.service.js';
import type { ApiKeysService } from '../auth/api-keys.service.js';
import type { ShownSession } from './people.repository.js';
import type { SignOutLink } from './sign-in-way.types.js';
import { newKeyForm, shownKey } from './new-key.page.js';
import { PASSWORD_CHARS_MIN } from './passwords.service.js';

const FIRST_GUIDES = ['docs/guides/connect.md', 'docs/guides/publish.md', 'docs/guides/operate.md'];

/** @param guides the pages of the documentation */
export function startPage(env: PageEnv, guides: { path: string; title: string }[]): Page {
  return page(
    env,
    'MCP servers',
    html`<p>This service connects apps to MCP servers: it lists servers, runs them, and keeps the connections to them. It is an
installation of Slipway.</p>
<a class="button primary" href="login">Sign in</a>
<a class="button" href="docs">API reference</a>
<h2>Guides</h2>
${guideList(guides.filter(({ path }) => FIRST_GUIDES.includes(path)))}
${details('All guides', guideList(guides))}`,
  );
}

function guideList(guides: { path: string; title: string }[]): Html {
  return html`<ul class="guide">${guides.map(({ path, title }) => html`<li><a href="${path}">${title}</a></li>`)}</ul>`;
}

const ACCOUNT: Field = {
  name: 'name',
  label: 'Account',
  attributes: html`autocomplete="username" autocapitalize="none" spellcheck="false" required`,
};

const newPassword = { type: 'password', attributes: html`autocomplete="new-password" required` } as const;
const NEW_PASSWORD: Field[] = [
  {
    name: 'password',
    label: 'New password',
    hint: `At least ${PASSWORD_CHARS_MIN} characters. A few words are easy to remember.`,
    ...newPassword,
  },
  { name: 'repeated', label: 'The same again', ...newPassword },
];

/** The sign-in page. After an error, `rejected` contains the name, and `next` is kept. */
export interface LoginView {
  token: Html;
  next: string | null;
  rejected?: RejectedForm;
  /** The address of the form is `login` by default. */
  action?: string;
  app?: string;
  /** False if the page offers only the other ways, and API keys of operators. */
  hasPasswords: boolean;
  /** Other ways to sign in; `problem` is the reason why a way is unavailable, null if it is available. */
  ways: { name: string; label: string; problem: string | null }[];
}

export function loginPage(env: PageEnv, loginView: LoginView): Page {
  const { token, next, rejected, action = 'login', app, ways, hasPasswords } = loginView;
  const view = { token, address: '', rejected };
  const hidden = next !== null && html`<input type="hidden" name="next" value="${next}">`;
  const attributes = html`autocomplete="current-password" required`;
  const password = { name: 'password', label: 'Password', type: 'password', attributes } as const;
  const key: Field = {
    name: 'key',
    label: 'API key',
    hint: 'A key with all rights of its account. You are signed in for as long as the key is valid.',
    type: 'password',
    attributes: html`autocomplete="off" spellcheck="false" required`,
  };
  return page(
    env,
    'Sign in',
    html`${app !== undefined && html`<p>The app <strong>${app}</strong> asks to act for you. Sign in to decide.</p>`}
${ways.map(({ name, label, problem }) => [problem !== null && noticeAs(problem, 'wait'), formOf({ token, address: action }, name, [hidden], button(label, { look: 'primary' }))])}
${!hasPasswords && rejected?.name === 'password' && noticeAs(`${rejected.text}.`, 'bad')}
${hasPasswords && formOf(view, 'password', [hidden, ACCOUNT, password], button('Sign in', { look: 'primary' }), { action })}
${details(hasPasswords ? 'Use an API key instead' : 'Operators: use an API key', formOf(view, 'key', [hidden, key], button('Sign in with this key'), { action }), rejected?.name === 'key')}
${hasPasswords && html`<p class="soft">No account or no password? The operator of this service sends you an invitation link.</p>`}`,
  );
}

export function signedOutPage(env: PageEnv, links: SignOutLink[]): Page {
  const buttons = links.map(({ label, url }) => html`<a class="button" href="${url}">${label}</a>`);
  return page(env, 'You are signed out', html`<a class="button primary" href="login">Sign in</a> ${buttons}`);
}

export interface InvitationView {
  token: Html;
  accountName: string;
  rejected?: RejectedForm;
}

/**
 * Returns the page on which a user chooses the first password, or a new one. Its form posts to the address of the
 * link.
 */
export function invitationPage(env: PageEnv, { token, accountName, rejected }: InvitationView): Page {
  const account = {
    name: '',
    label: 'Account',
    value: accountName,
    attributes: html`autocomplete="username" readonly`,
  };
  const end = button('Save and sign in', { look: 'primary' });
  return page(
    env,
    'Choose a password',
    html`<p>You are invited to this service. Remember the name of your account, and choose a password.</p>
${formOf({ token, address: '', rejected }, 'invite', [account, ...NEW_PASSWORD], end, { action: null })}`,
  );
}

export interface JoinView {
  token: Html;
  organization: string;
  role: Role;
  /** Null without a signed-in user. */
  person: SessionCaller | null;
  rejected?: RejectedForm;
  next: string;
}

/** Renders the page on which a signed-in user joins by a button, and anybody else with a new account. */
export function joinPage(env: PageEnv, { token, organization, role, person, rejected, next }: JoinView): Page {
  const intro = person
    ? html`<p>You are signed in as <strong>${person.accountName}</strong>.</p>`
    : html`<p>If you have an account, <a href="login?next=${encodeURIComponent(next)}">sign in</a>. Otherwise choose a name and a
password for a new one.</p>`;
  const fields = person ? [intro] : [intro, ACCOUNT, ...NEW_PASSWORD];
  const end = button('Join', { look: 'primary' });
  return page(
    env,
    'Join an organization',
    html`<p>You are invited to the organization <strong>${organization}</strong>, as ${role}.</p>
${formOf({ token, address: '', rejected }, 'invite', fields, end, { action: null })}`,
  );
}

export interface MeView {
  token: Html;
  accountName: string;
  isOperator: boolean;
  timeZone: string | null;
  limits?: AccountLimits;
  root: string;
  sessions: ShownSession[];
  keyId: string;
  apiKeys: Awaited<ReturnType<ApiKeysService['list']>>['apiKeys'];
  memberships: Awaited<ReturnType<MembersService['organizationsOf']>>['memberships'];
  namespaces: string[];
  once: ShownOnce | null;
  rejected?: RejectedForm;
  /** Key with which the session began; undefined for a password. */
  rootKeyId?: string;
  notice: string | null;
  hasPasswords: boolean;
  /** The parts of other ways of signing in. */
  ways: Html[];
}

export function mePage(view: MeView): Framed {
  const { token, root, accountName, isOperator, rootKeyId, namespaces, memberships, limits, notice, rejected } = view;
  const keyForms = { token, address: `${root}me/keys`, rejected };
  return {
    title: 'Your account',
    notice,
    asRequest: '/accounts/me',
    head: {
      tile: tile(accountName, { look: 'large round' }),
      badge: isOperator && badge('Operator'),
      lead: html`You are signed in as <strong>${accountName}</strong>${isOperator && ', the operator of this service'}.
<a href="${root}me/access">Apps that may act for you</a>, <a href="${root}ui/m/changes/me">changes in your account</a>${limits && limits.organizations > 0 && html`, <a href="${root}ui/new-organization">new organization</a>`}`,
    },
    body: withReason(
      view,
      html`${shownKey(view.once)}${columns(
        html`${keysSection(view, keyForms)}${browsersSection(view)}${
          memberships.length > 0 &&
          card(
            'organizations',
            'Organizations',
            list(
              memberships.map(({ organizationName: name, role }) => [
                who(name, `your role is ${role}`, { href: `${root}ui/o/${encodeURIComponent(name)}` }),
              ]),
            ),
          )
        }`,
        html`${card('create', 'Create an API key', newKeyForm(keyForms, 'create', namespaces, 'your account'))}${view.hasPasswords && card('password', 'Password', rootKeyId === undefined ? passwordForm(view) : inviteHint(isOperator))}${view.ways}${card('zone', 'Time zone', zoneForm(view))}`,
      )}`,
    ),
  };
}

function keysSection({ apiKeys, root }: MeView, forms: FormsView): Html {
  const rows = apiKeys.map(({ id, name, prefix, scopes: rights, expiresAt, lastUsedAt, replacedBy }) => {
    const act = (word: string, label: string, look: string) =>
      formOf(forms, word, [], button(label, { look, about: `${label}: ${name}` }), { id });
    return [
      html`<b>${name}</b><small><code>${prefix}…</code> ${rights?.join(', ') ?? 'all rights of your account'}</small>`,
      expiresAt === null ? 'Never' : timeOf(expiresAt),
      html`${lastUsedAt === null ? 'Never' : timeOf(lastUsedAt)}${replacedBy !== null && html`<small>replaced by another one</small>`}`,
      html`${buttonLink(`${root}ui/calls?account=${id}`, 'Calls', { look: 'small', about: `Calls: ${name}` })}${replacedBy === null && act('rotate', 'Rotate', 'small')}${act('revoke', 'Revoke', 'small ghost danger')}`,
    ];
  });
  return card(
    'keys',
    'API keys',
    rows.length === 0
      ? empty('No API keys', 'A key lets a program act for you.')
      : table('API keys', [['Key'], ['Expires'], ['Last used', 'extra'], ['Actions', 'actions']], rows),
    { count: rows.length },
  );
}

/** Browsers in the order in which a `User-Agent` is searched: most also name others. */
const BROWSERS = {
  Edge: /\bEdg/,
  Opera: /\bOPR\//,
  Firefox: /\b(Firefox|FxiOS)\//,
  Chrome: /(Chrome|CriOS)\//,
  Safari: /\bSafari\//,
};
const SYSTEMS = {
  iPhone: /iPhone/,
  iPad: /iPad/,
  Android: /Android/,
  Windows: /Windows/,
  macOS: /Mac OS X/,
  Linux: /Linux/,
};

/** Returns a name such as "Firefox on Linux"; the beginning of an unknown `User-Agent`. */
export function browserOf(agent: string): string {
  const nameIn = (names: Record<string, RegExp>) => Object.entries(names).find(([, sign]) => sign.test(agent))?.[0];
  const [browser, system] = [nameIn(BROWSERS), nameIn(SYSTEMS)];
  if (browser === undefined) return agent === '' ? 'A browser without a name' : agent.slice(0, 40).toWellFormed();
  return system === undefined ? browser : `${browser} on ${system}`;
}

function browsersSection({ token, root, sessions, keyId, rejected }: MeView): Html {
  const forms = { token, address: `${root}me`, rejected };
  const rows = sessions.map(({ id, agent, address, createdAt, lastUsedAt }) => {
    const name = browserOf(agent);
    const hidden = html`<input type="hidden" name="browser" value="${id}">`;
    const end = button('Sign out', { look: 'small', about: `Sign out ${name}` });
    return [
      html`${name}<p>from ${address}, signed in ${timeOf(createdAt.toISOString())}, last used ${timeOf(lastUsedAt.toISOString())}</p>`,
      id === keyId ? badge('This browser', 'ok') : actions(formOf(forms, 'browsers', [hidden], end)),
    ] as const;
  });
  const everywhere = html`<input type="hidden" name="everywhere" value="yes">`;
  const all = button('Sign out in all browsers', { look: 'small' });
  return card('browsers', 'Browsers', list(rows), {
    count: rows.length,
    end: formOf(forms, 'logout', [everywhere], all, { action: `${root}logout` }),
  });
}

function zoneForm({ token, root, timeZone, rejected }: MeView): Html {
  const zone: Field = {
    name: 'timeZone',
    label: 'Zone of the times in pages',
    hint: 'Such as Europe/Berlin. Empty for UTC.',
    value: timeZone ?? '',
    attributes: html`list="zones" autocomplete="off" spellcheck="false"`,
  };
  const list = html`<datalist id="zones"></datalist>`;
  return formOf({ token, address: `${root}me`, rejected }, 'zone', [zone, list], button('Save'));
}

function inviteHint(isOperator: boolean): Html {
  return isOperator
    ? html`<p>You signed in with an API key, which sets no password. For a link to choose one, run
<code>npm run keys -- --invite operator</code> on the machine of the service.</p>`
    : html`<p>You signed in with an API key, which sets no password. For a link to choose one, ask the operator of this service for an
invitation.</p>`;
}

function passwordForm({ token, root, accountName, rejected }: MeView): Html {
  const fields: (Field | Html)[] = [
    html`<input type="hidden" value="${accountName}" autocomplete="username">`,
    {
      name: 'old',
      label: 'Present password',
      type: 'password',
      attributes: html`autocomplete="current-password" required`,
    },
    ...NEW_PASSWORD,
    html`<p class="hint">All other browsers are signed out, and the apps that may act for you ask you again.</p>`,
  ];
  const end = button('Save');
  return formOf({ token, address: root, rejected }, 'me', fields, end, { action: `${root}me` });
}
