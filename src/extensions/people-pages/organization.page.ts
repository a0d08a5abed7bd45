/** A part that the role of the person cannot see is null, and left out. */
import {
  actions,
  badge,
  button,
  buttonLink,
  card,
  columns,
  details,
  formOf,
  grantTable,
  html,
  icon,
  list,
  newKeyForm,
  notice,
  pager,
  popup,
  requestRow,
  roles,
  shownKey,
  snippet,
  table,
  tile,
  timeOf,
  who,
  withReason,
  type Field,
  type Framed,
  type FormsView,
  type Grants,
  type Html,
  type ListedGrant,
  type MemberRole,
  type ShownOnce,
} from '../../extension.js';

export const DONE = {
  joined: 'You have joined the organization.',
  claimed: 'The namespace belongs to the organization.',
  role: 'The role is changed.',
  revoked: 'The key is revoked.',
  ended: 'The access is revoked.',
  uninvite: 'The invitation is revoked.',
} as const;

export interface OrganizationView extends FormsView {
  root: string;
  id: string;
  name: string;
  role: MemberRole;
  notice?: Framed['notice'];
  isMember: boolean;
  asOperator: boolean;
  once: ShownOnce | null;
  members: {
    members: { accountId: string; accountName: string; role: MemberRole }[];
    pagination: { currentPage: number; totalPages: number };
  } | null;
  /** The newest unused invitations; a link has no account. Null unless the person is an owner. */
  invited: { id: string; accountName: string | null; role: MemberRole | null; expiresAt: string }[] | null;
  namespaces: { name?: string }[] | null;
  requests: Awaited<ReturnType<Grants['listRequests']>> | null;
  keys: { id: string; name: string; prefix: string; expiresAt: string | null; lastUsedAt: string | null }[] | null;
  grants: { grants: GivenGrant[]; pagination: { totalCount: number } } | null;
}

interface GivenGrant extends ListedGrant {
  kind: 'server' | 'connection' | 'namespace';
  qualifiedName?: string;
  namespace: string;
  connectionId?: string;
}

const ROLE_MEANS: Record<MemberRole, string> = {
  owner: 'may do everything',
  editor: 'manages servers and connections',
  member: 'finds and calls servers and connections',
  guest: 'uses what was granted to the own account',
};

export function organizationPage(view: OrganizationView): Framed {
  const { id, name, role, notice, rejected, members } = view;
  return {
    title: name,
    notice,
    ...(members && { asRequest: `/accounts/${id}/members` }),
    crumbs: [['Account', 'me'], [name]],
    head: {
      tile: tile(name, { look: 'large' }),
      actions: view.role === 'owner' && buttonLink('#invite', html`${icon('add')}Invite`),
      badge: badge(
        view.asOperator ? 'Operator' : `You are ${role === 'owner' || role === 'editor' ? 'an' : 'a'} ${role}`,
      ),
      lead: html`Organization. ${view.asOperator ? 'You are not a member: as an operator you manage its members and keys.' : html`Your role is <strong>${role}</strong>: ${/^[eo]/.test(role) ? 'an' : 'a'} ${role} ${ROLE_MEANS[role]}.`}${view.invited && html` <a href="${view.root}ui/m/changes/${id}">Changes</a> in the organization`}`,
    },
    body: withReason(
      view,
      html`${shownKey(view.once)}${newLink(view.once)}${columns(
        html`${membersPart(view)}${grantsPart(view)}${keysPart(view)}`,
        html`${requestsPart(view)}${invitedPart(view)}${namespacesPart(view)}${
          view.isMember &&
          html`<section class="card">${details(
            `Leave ${name}`,
            html`<p>You lose what your role opens. An owner may take you in again.</p>
${formOf(view, 'leave', nameFields(name), button('Leave', { look: 'danger' }))}`,
            rejected?.name === 'leave',
          )}</section>`
        }`,
      )}`,
    ),
  };
}

function nameFields(name: string): [Html, Field] {
  const attributes = html`autocomplete="off" spellcheck="false" required`;
  return [
    html`<input type="hidden" name="expected" value="${name}">`,
    { name: 'typed', label: html`Type the name <strong>${name}</strong>`, attributes },
  ];
}

function roleField(value: MemberRole): Field {
  const options = roles.map((role) => [role, `${role}: ${ROLE_MEANS[role]}`] as const);
  return { name: 'role', label: 'Role', value, options };
}

function membersPart(view: OrganizationView): Html | null {
  const { members, role } = view;
  if (!members) return null;
  const rows = members.members.map((member) => [
    who(member.accountName, '', { look: 'round' }),
    member.role,
    role === 'owner' && changesOf(view, member),
  ]);
  return card(
    'members',
    'Members',
    html`${table('Members', [['Person'], ['Role'], ['Actions', 'actions']], rows)}
${pager('members', members.pagination, (page) => `${view.address}?page=${page}`)}`,
    { count: rows.length },
  );
}

function newLink(once: ShownOnce | null): Html | null {
  const { url, role, expiresAt } = once ?? {};
  if (url === undefined) return null;
  return html`${notice(html`The link for ${role === 'owner' || role === 'editor' ? 'an' : 'a'} <strong>${role}</strong> is shown this once. Send it to one person: it works once, until ${timeOf(expiresAt)}.`)}
${snippet('invitation', 'Invitation', url)}`;
}

function invitedPart(view: OrganizationView): Html | false {
  const { role, invited } = view;
  const rows = (invited ?? []).map(({ id, accountName, role: memberRole, expiresAt }) => {
    const about = `Revoke ${accountName === null ? 'this link' : `the invitation of ${accountName}`}`;
    return [
      html`<b>${accountName ?? 'A link'}</b> <p>${memberRole}, invited until ${timeOf(expiresAt)}</p>`,
      actions(formOf(view, 'uninvite', [], button('Revoke', { look: 'small ghost danger', about }), { id })),
    ] as const;
  });
  if (rows.length === 0 && role !== 'owner') return false;
  return card(
    'invite',
    'Invite a person',
    html`${role === 'owner' && formOf(view, 'invite', [roleField('member')], button('Create a link', { look: 'primary' }))}
${rows.length > 0 && html`<h3>Invited</h3>${list(rows)}`}`,
  );
}

function changesOf(
  view: OrganizationView,
  { accountId: id, accountName, role }: { accountId: string; accountName: string; role: MemberRole },
): Html {
  const revokeKeys: Field = {
    name: 'revokeKeys',
    label: 'Keys',
    type: 'checkbox',
    options: [['yes', 'Revoke their keys: API keys of the organization that this person made']],
  };
  const fields = [...nameFields(accountName), revokeKeys];
  return popup(
    html`Change<span class="hidden"> or remove ${accountName}</span>`,
    html`${formOf(view, 'role', [roleField(role)], button('Change the role'), { id })}<hr>
${formOf(view, 'remove', fields, button('Remove', { look: 'danger' }), { id })}`,
    view.rejected?.id === id,
  );
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
  const move: Field = {
    name: 'move',
    label: 'If it is yours already',
    type: 'checkbox',
    options: [['yes', 'Move it here. Its streams close, and the logins of its connections are revoked']],
  };
  return card(
    'namespaces',
    'Namespaces',
    html`${namespaces.length === 0 ? html`<p>None yet. A namespace is the first part of the names of servers and connections.</p>` : list(namespaces.map(({ name }) => [html`<code>${name}</code>`]))}
${details('Claim a namespace', formOf(view, 'claim', [field, move], button('Claim this namespace')), view.rejected?.name === 'claim')}`,
    { count: namespaces.length },
  );
}

function requestsPart(view: OrganizationView): Html | null {
  const { requests } = view;
  if (!requests || requests.requests.length === 0) return null;
  const rows = requests.requests.map((request) => requestRow(`${view.root}ui`, request));
  return card('requests', 'Requests for access', html`${list(rows)}${moreOf(requests)}`, { count: rows.length });
}

function grantsPart(view: OrganizationView): Html | null {
  const { grants } = view;
  if (!grants) return null;
  const rows = grants.grants.map((grant) => ({
    grant,
    kind: grant.kind,
    name: grant.qualifiedName ?? [grant.namespace, grant.connectionId].filter(Boolean).join('/'),
    canEnd: true,
  }));
  return card(
    'grants',
    'Who else may use what the organization owns',
    html`${rows.length === 0 ? html`<p class="soft">Nobody.</p>` : grantTable(view, rows)}${moreOf(grants)}`,
  );
}

function keysPart(view: OrganizationView): Html | null {
  const { keys, namespaces } = view;
  if (!keys) return null;
  const rows = keys.map(({ id, name, prefix, expiresAt, lastUsedAt }) => [
    who(name, html`<code>${prefix}…</code>`),
    expiresAt === null ? 'No end' : timeOf(expiresAt),
    lastUsedAt === null ? 'Never' : timeOf(lastUsedAt),
    html`${buttonLink(`${view.root}ui/calls?account=${id}`, 'Calls', { look: 'small', about: `Calls: ${name}` })}${popup(
      html`Revoke<span class="hidden"> ${name}</span>`,
      formOf(view, 'revoke', nameFields(name), button('Revoke', { look: 'danger' }), { id }),
      view.rejected?.id === id,
    )}`,
  ]);
  const spaces = (namespaces ?? []).flatMap(({ name }) => name ?? []);
  return card(
    'keys',
    'API keys of the organization',
    html`${details('Create a key', newKeyForm(view, 'key', spaces, 'the organization'), view.rejected?.name === 'key')}
${rows.length === 0 ? html`<p class="soft">None.</p>` : table('API keys', [['Key'], ['Expires'], ['Last used', 'extra'], ['Actions', 'actions']], rows)}`,
  );
}

function moreOf({ pagination: { totalCount } }: { pagination: { totalCount: number } }): Html | null {
  return totalCount > 100 ? html`<p>The newest 100 of ${totalCount}. The API lists all.</p>` : null;
}
