/** The page of `/ui/o/{name}`. A part that is null is not for the role of the person, and is left out. */
import { focusOf, openForm, readTyped, type FormsView } from '../../platform/pages/forms.js';
import type { Framed } from '../../platform/pages/frame.js';
import { html, type Html } from '../../platform/pages/html.js';
import { timeOf } from '../../platform/pages/times.js';
import { keyLevels, roles, type Role } from '../auth/access.types.js';
import { grantEntry, type ListedGrant } from './grant-entry.page.js';

/** Sentences for the word in the address after a form. */
export const DONE = {
  claimed: 'The namespace belongs to the organization.',
  granted: 'Access is granted.',
  refused: 'The request is refused.',
  role: 'The role is changed.',
  revoked: 'The key is revoked.',
  ended: 'The access is revoked.',
  uninvite: 'The invitation is revoked.',
} as const;

/** Content of the page. */
export interface OrganizationView extends FormsView {
  id: string;
  name: string;
  role: Role;
  notice?: Framed['notice'];
  /** The person may leave. */
  isMember: boolean;
  /** The person is no member, and manages members and keys as an operator. */
  asOperator: boolean;
  /** A new key. */
  made?: { name: string; key: string };
  /** A new invitation. */
  invitation?: { url: string; expiresAt: string };
  members: {
    members: { accountId: string; accountName: string; role: Role }[];
    pagination: { currentPage: number; totalPages: number };
  } | null;
  /** Unused invitations, the newest; a link has no account. Null for others than owners. */
  invited: { id: string; accountName: string | null; role: Role | null; expiresAt: string }[] | null;
  namespaces: { name?: string }[] | null;
  requests: {
    requests: { id: string; qualifiedName: string; account: { name: string }; text: string; createdAt: string }[];
    pagination: { totalCount: number };
  } | null;
  keys: { id: string; name: string; prefix: string; expiresAt: string | null; lastUsedAt: string | null }[] | null;
  grants: { grants: GivenGrant[]; pagination: { totalCount: number } } | null;
}

/** A grant of what the organization owns. */
interface GivenGrant extends ListedGrant {
  kind: 'server' | 'connection' | 'namespace';
  qualifiedName?: string;
  namespace: string;
  connectionId?: string;
}

const ROLE_MEANS: Record<Role, string> = {
  owner: 'may do everything',
  editor: 'manages servers and connections',
  member: 'finds and calls servers and connections',
  guest: 'uses what was granted to the own account',
};

/** The page of an organization, as the person may see it. */
export function organizationPage(view: OrganizationView): Framed {
  const { id, name, role, notice, rejected, members } = view;
  return {
    title: name,
    notice,
    ...(members && { asRequest: `/accounts/${id}/members` }),
    body: html`${rejected && html`<p role="alert">Nothing was changed: ${rejected.text}.</p>`}
<p>Organization. ${view.asOperator ? 'You are not a member: as an operator you manage its members and keys.' : html`Your role is <strong>${role}</strong>: who has it ${ROLE_MEANS[role]}.`}</p>
${requestsPart(view)}${membersPart(view)}${namespacesPart(view)}${grantsPart(view)}${keysPart(view)}
${
  view.isMember &&
  html`<section><details${rejected?.name === 'leave' && html` open`}><summary>Leave ${name}</summary>
<p>You lose what your role opens. An owner may take you in again.</p>
${openForm(view, 'leave')}${nameInput(view, 'leave', '', name)}
<button type="submit" class="plain">Leave</button></form></details></section>`
}`,
  };
}

/** The field into which the name of what goes is typed. */
function nameInput(view: OrganizationView, action: string, of: string, name: string): Html {
  return html`<input type="hidden" name="expected" value="${name}">
<p><label for="${action}-${of}">Type the name <strong>${name}</strong></label>
<input id="${action}-${of}" name="typed" value="${readTyped(view, action, of, 'typed')}" autocomplete="off" spellcheck="false" required${focusOf(view, action, of)}></p>`;
}

function roleSelect(id: string, chosen: Role): Html {
  const options = roles.map(
    (role) => html`<option value="${role}"${role === chosen && html` selected`}>${role}: ${ROLE_MEANS[role]}</option>`,
  );
  return html`<select id="${id}" name="role">${options}</select>`;
}

function membersPart(view: OrganizationView): Html | null {
  const { members, role, invitation } = view;
  if (!members) return null;
  const { currentPage, totalPages } = members.pagination;
  const rows = members.members.map(
    (member) =>
      html`<li><strong>${member.accountName}</strong>: ${member.role}
${role === 'owner' && changesOf(view, member)}</li>`,
  );
  return html`<section aria-labelledby="members"><h2 id="members">Members</h2>
<ul class="entries">${rows}</ul>
${totalPages > 1 && html`<p>Page ${currentPage} of ${totalPages}. ${pageLink(view, currentPage - 1, totalPages, 'Previous')} ${pageLink(view, currentPage + 1, totalPages, 'Next')}</p>`}
${
  view.invited?.length &&
  html`<h3>Invited</h3><ul class="entries">${view.invited.map(
    ({ id, accountName, role: memberRole, expiresAt }) =>
      html`<li><strong>${accountName ?? 'A link'}</strong>: ${memberRole}, invited until ${timeOf(expiresAt)}
${openForm(view, 'uninvite', id)}<button type="submit" class="plain">Revoke ${accountName === null ? 'this link' : `the invitation of ${accountName}`}</button></form></li>`,
  )}</ul>`
}${
    invitation &&
    html`<p role="status">The link below is shown this once. Send it to one person: it works once, until ${timeOf(invitation.expiresAt)}.</p>
<pre id="invitation">${invitation.url}</pre>
<button type="button" class="plain" data-copy="invitation" hidden>Copy</button>`
  }
${
  role === 'owner' &&
  html`<h3>Invite a person</h3>
${openForm(view, 'invite')}
<p><label for="invite-role">Role</label>${roleSelect('invite-role', 'member')}</p>
<button type="submit">Create a link</button></form>`
}</section>`;
}

function pageLink({ address }: OrganizationView, page: number, last: number, label: string): Html | null {
  return page < 1 || page > last ? null : html`<a href="${address}?page=${page}">${label}</a>`;
}

function changesOf(
  view: OrganizationView,
  { accountId: id, accountName, role }: { accountId: string; accountName: string; role: Role },
): Html {
  return html`<details${view.rejected?.id === id && html` open`}><summary>Change or remove ${accountName}</summary>
${openForm(view, 'role', id)}
<p><label for="role-${id}">Role</label>${roleSelect(`role-${id}`, role)}</p>
<button type="submit">Change the role</button></form>
${openForm(view, 'remove', id)}
${nameInput(view, 'remove', id, accountName)}
<p><label><input type="checkbox" name="revokeKeys" value="yes">Revoke their keys: API keys of the organization that this person made</label></p>
<button type="submit" class="plain">Remove</button></form></details>`;
}

function namespacesPart(view: OrganizationView): Html | null {
  const { namespaces } = view;
  if (!namespaces) return null;
  return html`<section aria-labelledby="namespaces"><h2 id="namespaces">Namespaces</h2>
${namespaces.length === 0 ? html`<p>None yet. A namespace is the first part of the names of servers and connections.</p>` : html`<ul>${namespaces.map(({ name }) => html`<li>${name}</li>`)}</ul>`}
${openForm(view, 'claim')}
<p><label for="namespace">Name</label><span id="namespace-hint" class="hint">3 to 39 lower-case letters, digits and hyphens</span>
<input id="namespace" name="namespace" value="${readTyped(view, 'claim', '', 'namespace')}" aria-describedby="namespace-hint"
autocapitalize="none" spellcheck="false" required${focusOf(view, 'claim')}></p>
<button type="submit">Claim this namespace</button></form></section>`;
}

function requestsPart(view: OrganizationView): Html | null {
  const { requests } = view;
  if (!requests || requests.requests.length === 0) return null;
  const rows = requests.requests.map(({ id, qualifiedName, account, text, createdAt }) => {
    const request = `requests/${encodeURIComponent(qualifiedName)}/${id}`;
    const refuse = `${request}/refuse`;
    return html`<li><strong>${account.name}</strong> asks for access to <strong>${qualifiedName}</strong>, on ${timeOf(createdAt)}: “${text}”
${openForm(view, `${request}/grant`)}<button type="submit">Grant calls to ${account.name}</button></form>
${openForm(view, refuse)}
<p><label for="refuse-${id}">Answer to ${account.name}</label>
<input id="refuse-${id}" name="refuse" value="${readTyped(view, refuse, '', 'refuse')}" maxlength="500" required${focusOf(view, refuse)}></p>
<button type="submit" class="plain">Refuse</button></form></li>`;
  });
  return html`<section aria-labelledby="requests"><h2 id="requests">Requests for access</h2>
<ul class="entries">${rows}</ul>${moreOf(requests)}</section>`;
}

function grantsPart(view: OrganizationView): Html | null {
  const { grants } = view;
  if (!grants) return null;
  const rows = grants.grants.map((grant) => {
    const name = grant.qualifiedName ?? [grant.namespace, grant.connectionId].filter(Boolean).join('/');
    return grantEntry(view, grant, { kind: grant.kind, name });
  });
  return html`<section aria-labelledby="grants"><h2 id="grants">Who else may use what the organization owns</h2>
${rows.length === 0 ? html`<p>Nobody.</p>` : html`<ul class="entries">${rows}</ul>`}${moreOf(grants)}</section>`;
}

function keysPart(view: OrganizationView): Html | null {
  const { keys, made: newKey, namespaces } = view;
  if (!keys) return null;
  const rows = keys.map(({ id, name, prefix, expiresAt, lastUsedAt }) => {
    const end = expiresAt === null ? 'no end' : html`until ${timeOf(expiresAt)}`;
    const use = lastUsedAt === null ? 'never used' : html`last used on ${timeOf(lastUsedAt)}`;
    return html`<li><strong>${name}</strong> <code>${prefix}…</code>: ${end}, ${use}
<details${view.rejected?.id === id && html` open`}><summary>Revoke ${name}</summary>${openForm(view, 'revoke', id)}
${nameInput(view, 'revoke', id, name)}<button type="submit" class="plain">Revoke</button></form></details></li>`;
  });
  const spaces = (namespaces ?? []).flatMap(({ name }) => name ?? []);
  const scopes = [
    ...keyLevels.map((level) => [level, `${level}, in all namespaces`]),
    ...spaces.flatMap((space) => keyLevels.map((level) => [`${level}:${space}`, `${level}, in ${space}`])),
    ['all', 'everything that the organization may'],
  ];
  return html`<section aria-labelledby="keys"><h2 id="keys">API keys of the organization</h2>
${
  newKey &&
  html`<p role="status">The key <strong>${newKey.name}</strong>, shown this once: <code id="new-key">${newKey.key}</code>
<button type="button" class="plain" data-copy="new-key" hidden>Copy</button></p>`
}
${rows.length === 0 ? html`<p>None.</p>` : html`<ul class="entries">${rows}</ul>`}
<h3>Create a key</h3>
${openForm(view, 'key')}
<p><label for="key-name">Name</label>
<input id="key-name" name="name" value="${readTyped(view, 'key', '', 'name')}" maxlength="255" required${focusOf(view, 'key')}></p>
<p><label for="key-days">Days until it expires</label>
<input id="key-days" name="days" type="number" min="1" max="3650" value="${readTyped(view, 'key', '', 'days') || '90'}" required></p>
<p><label for="key-scope">It may</label><select id="key-scope" name="scope">
${scopes.map(([scope, label]) => html`<option value="${scope}"${readTyped(view, 'key', '', 'scope') === scope && html` selected`}>${label}</option>`)}</select></p>
<button type="submit">Create the key</button></form></section>`;
}

function moreOf({ pagination: { totalCount } }: { pagination: { totalCount: number } }): Html | null {
  return totalCount > 100 ? html`<p>The newest 100 of ${totalCount}. The API lists all.</p>` : null;
}
