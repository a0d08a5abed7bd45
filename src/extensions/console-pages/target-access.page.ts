import {
  button,
  buttonLink,
  card,
  columns,
  details,
  formOf,
  grantTable,
  html,
  pager,
  qualifiedNameOf,
  requestText,
  steps,
  tile,
  who,
  withReason,
  type Accounts,
  type Field,
  type FormsView,
  type Framed,
  type Grants,
  type Html,
  type SessionCaller,
  type Target,
  type TargetName,
} from '../../extension.js';
import { ADD_STEPS } from './add/add.page.js';

type AccessRequest = Awaited<ReturnType<Grants['listServerRequests']>>['requests'][number];
type GrantList = Awaited<ReturnType<Grants['list']>>;

export const DONE = {
  granted: 'Access is granted.',
  refused: 'The request is refused. The account reads your reason.',
  ended: 'The access is revoked.',
} as const;

interface TargetAccessView extends FormsView {
  root: string;
  target: Target;
  owner: string;
  isOrganization: boolean;
  granted: GrantList;
  ofNamespace: GrantList['grants'];
  requests: AccessRequest[];
  tools: string[];
  isAdding: boolean;
  notice: string | null;
}

export function accessPath(target: TargetName): string {
  return `ui/access/${target.kind}/${encodeURIComponent(qualifiedNameOf(target))}`;
}

/** Returns the link to the access page of a target; null unless the person administers it. */
export async function accessLinkOf(accounts: Accounts, person: SessionCaller, name: TargetName) {
  const target = await accounts.target(person, 'administer', name);
  return target && ((root: string) => buttonLink(root + accessPath(target), 'Access'));
}

/**
 * Returns a link to the recorded calls of a target. @param name `namespace/connectionId`, or the name of the server or
 * namespace
 */
export function callsLink(root: string, name: string): Html {
  return buttonLink(`${root}ui/calls?${new URLSearchParams({ target: name }).toString()}`, 'Calls');
}

function pathOf({ kind, namespace, name }: TargetName): string {
  if (kind === 'namespace') return `ui/n/${namespace}`;
  return kind === 'server'
    ? `ui/s/${namespace}${name && `--${name}`}`
    : `ui/c/${namespace}/${encodeURIComponent(name)}`;
}

export function targetAccessPage(view: TargetAccessView): Framed {
  const { root, target, owner, isOrganization, granted, ofNamespace, isAdding } = view;
  const { kind, namespace, title } = target;
  const rows = [
    ...granted.grants.map((grant) => ({ grant, name: qualifiedNameOf(target), kind, canEnd: true })),
    ...ofNamespace.map((grant) => ({ grant, name: namespace, kind: 'namespace', canEnd: false })),
  ];
  const done = buttonLink(`${root}${pathOf(target)}?done=added#connect`, 'Done: connect an app', { look: 'primary' });
  return {
    title: `${title}: who may use it`,
    notice: view.notice,
    crumbs: [['Home', 'ui/'], [qualifiedNameOf(target), pathOf(target)], ['Access']],
    head: {
      tile: tile(title, { look: 'large' }),
      actions: isAdding && done,
      lead: html`<strong>${owner}</strong> owns <strong>${namespace}</strong> and may do everything.${isOrganization && ' Its members may use this, each by role.'}${target.visibility === 'public' && ' Everybody with an account may call it.'} Accounts with access call its tools in the name of its owner.`,
    },
    ...(isAdding && { tabs: steps(ADD_STEPS, 3) }),
    body: withReason(
      view,
      columns(
        html`${requestsCard(view)}${card(
          'access',
          'Access',
          html`${rows.length === 0 ? html`<p class="soft">Nobody else has access.</p>` : grantTable(view, rows)}
${pager('grants', granted.pagination, (page) => `${view.address}?page=${page}${isAdding ? '&from=add' : ''}`)}`,
          { count: granted.pagination.totalCount },
        )}`,
        card('grant', 'Grant access', grantForm(view)),
      ),
    ),
  };
}

function requestsCard(view: TargetAccessView): Html | false {
  const { requests } = view;
  const reason = { name: 'refuse', label: 'Reason', attributes: html`maxlength="500" required` };
  const parts = requests.map((request) => {
    const { id, account } = request;
    const refuse = button('Refuse', { look: 'danger', about: `Refuse ${account.name}` });
    return html`${who(account.name, requestText(request), { look: 'round' })}${grantForm(view, request)}${details(
      'Refuse…',
      formOf(view, 'refuse', [reason], refuse, { id }),
      view.rejected?.name === 'refuse' && view.rejected.id === id,
    )}`;
  });
  return requests.length > 0 && card('request', 'Requests for access', html`${parts}`, { count: requests.length });
}

/** @param request whose account gets the access, instead of entered accounts */
function grantForm(view: TargetAccessView, request?: AccessRequest): Html {
  const levels = ['call', 'manage'].map((level) => [level, `${level} the ${view.target.kind}`] as const);
  const tools: Field = {
    name: 'tool',
    member: 'tools',
    label: 'Only these tools',
    hint: 'Without a tick: all tools, including later ones',
    type: 'checkbox',
    options: view.tools.map((name) => [name, name]),
  };
  const attributes = html`maxlength="20000" required autocomplete="off" spellcheck="false"`;
  const isOpen = view.rejected?.values.has('tool') && view.rejected.id === (request?.id ?? '');
  const fields = [
    view.isAdding && html`<input type="hidden" name="from" value="add">`,
    !request && {
      name: 'account',
      label: 'Accounts',
      hint: 'Names of people or organizations, with commas',
      attributes,
    },
    { name: 'level', label: 'May', options: levels },
    ...(view.tools.length > 0
      ? [
          html`<details${isOpen && html` open`}><summary class="soft">Only some tools</summary>`,
          tools,
          html`</details>`,
        ]
      : []),
    {
      name: 'until',
      member: 'expiresAt',
      label: 'Until',
      hint: 'The access ends when this day begins, in UTC. Empty: no end',
      type: 'date' as const,
    },
  ];
  const about = request && `Grant access to ${request.account.name}`;
  return formOf(view, 'grant', fields, button('Grant access', { look: 'primary', about }), { id: request?.id });
}
