import {
  actions,
  badge,
  button,
  card,
  columns,
  empty,
  formOf,
  html,
  list,
  notice,
  pager,
  popup,
  roles,
  search,
  snippet,
  table,
  timeOf,
  who,
  withReason,
  type Accounts,
  type Field,
  type Framed,
  type FormsView,
  type Html,
  type ShownOnce,
} from '../../extension.js';

type AccountList = Awaited<ReturnType<Accounts['list']>>;
type ListedAccount = AccountList['accounts'][number];

export const DONE = {
  disabled: 'The account is disabled: its keys are refused, and nobody is signed in as it.',
  enabled: 'The account is enabled.',
  operator: 'The account is an operator.',
  user: 'The account is no longer an operator.',
} as const;

export interface PeopleView extends FormsView {
  root: string;
  ownId: string;
  q: string;
  people: AccountList;
  organizations: AccountList;
  once: ShownOnce | null;
  notice?: string;
}

export function peoplePage(view: PeopleView): Framed {
  return {
    title: 'People',
    notice: view.notice,
    asRequest: `/accounts?kind=user${view.q && `&q=${encodeURIComponent(view.q)}`}`,
    head: { lead: 'Everybody with an account on this service. Only operators see this page.' },
    body: withReason(
      view,
      html`${linkCard(view)}${columns(accountsCard(view), html`${inviteCard(view)}${organizationsCard(view)}`)}`,
    ),
  };
}

function accountsCard(view: PeopleView): Html {
  const { q, people } = view;
  const headings = [['Person'], ['State', 'state'], ['Role'], ['Last seen'], ['Actions', 'actions']] as const;
  const rows = people.accounts.map((account) => [
    who(account.name, html`since ${timeOf(account.createdAt)}`, { look: 'round' }),
    stateOf(account),
    account.isOperator ? 'Operator' : 'User',
    account.lastSeenAt === null ? 'Never' : timeOf(account.lastSeenAt),
    account.id === view.ownId ? 'You' : manage(view, account),
  ]);
  return card(
    'accounts',
    'Accounts',
    html`${search('Find a person', q)}
${rows.length === 0 ? empty('Nobody has such a name', 'Search for a part of the name of the account.') : table('Accounts', headings, rows)}
${pager('accounts', people.pagination, (page) => `?${new URLSearchParams({ q, page: String(page) }).toString()}`)}`,
    { count: people.pagination.totalCount },
  );
}

function stateOf({ disabled, suspended, signIn }: ListedAccount): Html {
  if (disabled) return badge('Disabled', 'held');
  if (suspended !== null) return html`${badge('Suspended', 'held')}<small>${suspended}</small>`;
  if (signIn === 'password' || signIn === 'identity') return badge('Active', 'ok');
  return signIn === 'invited' ? badge('Invited', 'wait') : badge('Keys only', 'off');
}

function manage(view: PeopleView, { id, name, disabled, suspended, isOperator, signIn }: ListedAccount): Html {
  const form = (action: string, label: string, to?: string, look = '') =>
    formOf(
      view,
      action,
      [to !== undefined && html`<input type="hidden" name="to" value="${to}">`],
      button(label, { look }),
      { id },
    );
  const link = form('link', signIn === 'password' ? 'Link for a new password' : 'New link');
  const operator = isOperator
    ? form('operator', 'Make a user', 'user')
    : form('operator', 'Make an operator', 'operator');
  const parts = disabled
    ? form('state', 'Enable', 'enabled')
    : html`${suspended !== null && !isOperator && form('state', 'Lift the suspension', 'enabled')}${link}<hr>${operator}${!isOperator && html`<hr>${form('state', 'Disable', 'disabled', 'danger')}`}`;
  return popup(html`Manage<span class="hidden"> ${name}</span>`, parts, view.rejected?.id === id);
}

function linkCard({ once }: PeopleView): Html | null {
  if (!once) return null;
  return card(
    'link',
    `Link for ${once.name}`,
    html`${notice(html`Send it to ${once.name}. It is shown this once and works once, until ${timeOf(once.expiresAt)}.`)}
${snippet('invitation', 'Link', once.url)}`,
  );
}

function inviteCard(view: PeopleView): Html {
  const organizations = view.organizations.accounts.map(({ id, name }) => [id, name] as const);
  const name: Field = {
    name: 'name',
    label: 'Account name',
    hint: 'The person chooses a password with the link.',
    attributes: html`maxlength="255" autocomplete="off" autocapitalize="none" spellcheck="false" required`,
  };
  const fields: Field[] =
    organizations.length === 0
      ? []
      : [
          { name: 'organization', label: 'Organization', options: organizations },
          {
            name: 'role',
            label: 'Role in it',
            value: '',
            options: [['', 'Not a member'], ...roles.map((role) => [role, role] as const)],
          },
        ];
  return card(
    'invite',
    'Invite a person',
    formOf(view, 'invite', [name, ...fields], button('Create a link', { look: 'primary' })),
  );
}

function organizationsCard(view: PeopleView): Html {
  const { root, organizations } = view;
  const rows = organizations.accounts.map(
    ({ name, createdAt }) =>
      [who(name, html`since ${timeOf(createdAt)}`, { href: `${root}ui/o/${encodeURIComponent(name)}` })] as const,
  );
  const name: Field = { name: 'name', label: 'Name', attributes: html`maxlength="255" autocomplete="off" required` };
  return card(
    'organizations',
    'Organizations',
    html`${rows.length === 0 ? html`<p class="soft">An organization owns namespaces together.</p>` : list(rows)}
${popup('New organization', formOf(view, 'organization', [name], actions(button('Create'))), view.rejected?.name === 'organization')}`,
    { count: organizations.pagination.totalCount },
  );
}
