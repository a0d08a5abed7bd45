/** The page of `/ui/o/{name}`. A part that is null is not for the role of the person, and is left out. */
import { formOf, withReason, type Field, type FormsView } from '../../platform/pages/forms.js';
import type { Framed } from '../../platform/pages/frame.js';
import { html, type Html } from '../../platform/pages/html.js';
import { timeOf } from '../../platform/pages/times.js';
import { roles, type Role } from '../auth/access.types.js';
import { newKeyForm } from '../people/new-key.page.js';
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
    body: withReason(
      view,
      html`<p>Organization. ${view.asOperator ? 'You are not a member: as an operator you manage its members and keys.' : html`Your role is <strong>${role}</strong>: who has it ${ROLE_MEANS[role]}.`}</p>
${requestsPart(view)}${membersPart(view)}${namespacesPart(view)}${grantsPart(view)}${keysPart(view)}
${view.invited && html`<p><a href="${view.address}/../../m/changes/${id}">Changes</a> in the organization</p>`}
${
  view.isMember &&
  html`<section><details${rejected?.name === 'leave' && html` open`}><summary>Leave ${name}</summary>
<p>You lose what your role opens. An owner may take you in again.</p>
${formOf(view, 'leave', nameFields(name), html`<button type="submit" class="plain">Leave</button>`)}</details></section>`
}`,
    ),
  };
}

/** The field into which the name of what goes is typed. */
function nameFields(name: string): [Html, Field] {
  const attributes = html`autocomplete="off" spellcheck="false" required`;
  return [
    html`<input type="hidden" name="expected" value="${name}">`,
    { name: 'typed', label: html`Type the name <strong>${name}</strong>`, attributes },
  ];
}

function roleField(value: Role): Field {
  const options = roles.map((role) => [role, `${role}: ${ROLE_MEANS[role]}`] as const);
  return { name: 'role', label: 'Role', value, options };
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
${formOf(view, 'uninvite', [], html`<button type="submit" class="plain">Revoke ${accountName === null ? 'this link' : `the invitation of ${accountName}`}</button>`, { id })}</li>`,
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
${formOf(view, 'invite', [roleField('member')], html`<button type="submit">Create a link</button>`)}`
}</section>`;
}

function pageLink({ address }: OrganizationView, page: number, last: number, label: string): Html | null {
  return page < 1 || page > last ? null : html`<a href="${address}?page=${page}">${label}</a>`;
}

function changesOf(
  view: OrganizationView,
  { accountId: id, accountName, role }: { accountId: string; accountName: string; role: Role },
): Html {
  const revokeKeys: Field = {
    name: 'revokeKeys',
    label: 'Keys',
    type: 'checkbox',
    options: [['yes', 'Revoke their keys: API keys of the organization that this person made']],
  };
  const fields = [...nameFields(accountName), revokeKeys];
  return html`<details${view.rejected?.id === id && html` open`}><summary>Change or remove ${accountName}</summary>
${formOf(view, 'role', [roleField(role)], html`<button type="submit">Change the role</button>`, { id })}
${formOf(view, 'remove', fields, html`<button type="submit" class="plain">Remove</button>`, { id })}</details>`;
}

function namespacesPart(view: OrganizationView): Html | null {
  const { namespaces } = view;
  if (!namespaces) return null;
  const field: Field = {
    name: 'namespace',
    member: 'name',
    label: 'Name',
    hint: '3 to 39 lower-case letters, digits and hyphens',
    attributes: html`autocapitalize="none" spellcheck="false" required`,
  };
  return html`<section aria-labelledby="namespaces"><h2 id="namespaces">Namespaces</h2>
${namespaces.length === 0 ? html`<p>None yet. A namespace is the first part of the names of servers and connections.</p>` : html`<ul>${namespaces.map(({ name }) => html`<li>${name}</li>`)}</ul>`}
${formOf(view, 'claim', [field], html`<button type="submit">Claim this namespace</button>`)}</section>`;
}

function requestsPart(view: OrganizationView): Html | null {
  const { requests } = view;
  if (!requests || requests.requests.length === 0) return null;
  const rows = requests.requests.map(({ id, qualifiedName, account, text, createdAt }) => {
    const request = `requests/${encodeURIComponent(qualifiedName)}/${id}`;
    const answer = { name: 'refuse', label: `Answer to ${account.name}`, attributes: html`maxlength="500" required` };
    return html`<li><strong>${account.name}</strong> asks for access to <strong>${qualifiedName}</strong>, on ${timeOf(createdAt)}: “${text}”
${formOf(view, `${request}/grant`, [], html`<button type="submit">Grant calls to ${account.name}</button>`)}
${formOf(view, `${request}/refuse`, [answer], html`<button type="submit" class="plain">Refuse</button>`)}</li>`;
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
<details${view.rejected?.id === id && html` open`}><summary>Revoke ${name}</summary>
${formOf(view, 'revoke', nameFields(name), html`<button type="submit" class="plain">Revoke</button>`, { id })}</details></li>`;
  });
  const spaces = (namespaces ?? []).flatMap(({ name }) => name ?? []);
  return html`<section aria-labelledby="keys"><h2 id="keys">API keys of the organization</h2>
${
  newKey &&
  html`<p role="status">The key <strong>${newKey.name}</strong>, shown this once: <code id="new-key">${newKey.key}</code>
<button type="button" class="plain" data-copy="new-key" hidden>Copy</button></p>`
}
${rows.length === 0 ? html`<p>None.</p>` : html`<ul class="entries">${rows}</ul>`}
<h3>Create a key</h3>
${newKeyForm(view, 'key', spaces, 'the organization')}</section>`;
}

function moreOf({ pagination: { totalCount } }: { pagination: { totalCount: number } }): Html | null {
  return totalCount > 100 ? html`<p>The newest 100 of ${totalCount}. The API lists all.</p>` : null;
}
