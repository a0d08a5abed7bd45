/**
 * The page of `/ui/`: the user's pending tasks, and the servers and connections that the user can use. It shows only the kind of a reason,
 * as the service does.
 */
import {
  actions,
  badge,
  button,
  buttonLink,
  card,
  columns,
  empty,
  icon,
  list,
  table,
  tabs,
  who,
} from '../../platform/pages/components.js';
import { formOf, withReason, type FormsView } from '../../platform/pages/forms.js';
import { html, type Html, type HtmlValue } from '../../platform/pages/html.js';
import type { Framed } from '../../platform/pages/frame.js';
import { timeOf } from '../../platform/pages/times.js';
import type { WaitingInvitation } from '../auth/members.service.js';
import type { AccessRequestsService } from '../grants/access-requests.service.js';
import { usableStates, type UsableState } from '../grants/usable/usable.types.js';
import type { UsableService } from '../grants/usable/usable.service.js';
import type { ServerSearchService } from '../servers/search/server-search.service.js';
import { lastUseOf, requestRow } from './grant-entry.page.js';
import { ownIcon, setupOf, stateOf, type ShownState } from './states.js';

type Usable = Awaited<ReturnType<UsableService['list']>>['usable'][number];
type AccessRequest = Awaited<ReturnType<AccessRequestsService['list']>>['requests'][number];

const STATES = { needs: 'Needs you', works: 'Works', broken: 'Does not work', unused: 'Not used yet' } as const;

const KINDS = { connection: 'Connection', server: 'Server', namespace: 'Connections of' } as const;

/** Minimum score of a server that has all words of a search. */
const ALL_WORDS = 0.35;

export const DONE: Record<string, string> = {
  deleted: 'The connection is deleted.',
  declined: 'The invitation is declined.',
};

export interface HomeView extends FormsView {
  baseUrl: string;
  /** The search; an empty one shows everything. */
  q: string;
  needs: Usable[];
  requests: AccessRequest[];
  parts?: Html[];
  others?: Html[];
  invitations: WaitingInvitation[];
  /** Counts open requests and invitations that are not shown as well. */
  waitingCount: number;
  usable: Awaited<ReturnType<UsableService['list']>>;
  state: UsableState | undefined;
  isLater: boolean;
  catalogue: Awaited<ReturnType<ServerSearchService['list']>>['servers'];
  notice: string | null;
  /** Null for users other than the operator, and during a search. */
  firstRun: Html | null;
}

export function homePage(view: HomeView): Framed {
  const { address, q, needs, parts = [], requests, invitations, waitingCount, usable, state, notice } = view;
  const ui = `${address}/`;
  const isEmpty = requests.length === 0 && usable.counts.all === 0;
  const count = needs.length + waitingCount;
  const params = new URLSearchParams({ section: 'all', ...(q !== '' && { q }), ...(state && { state }) });
  return {
    title: 'Home',
    notice,
    asRequest: `/accounts/me/usable?${String(params)}`,
    head: { actions: buttonLink(`${ui}add`, html`${icon('add')}Add a server`, { look: 'primary' }) },
    body: withReason(
      view,
      html`${view.firstRun}
${
  (count > 0 || parts.length > 0) &&
  card(
    'needs',
    'Needs you',
    html`${parts}${
      count > 0 &&
      list([
        ...invitations.map((invitation) => invitationRow(view, invitation)),
        ...requests.map((request) => requestRow(address, request)),
        ...needs.map((row) => needRow(view, row)),
      ])
    }`,
    { ...(count > 0 && parts.length === 0 && { count }) },
  )
}
${view.others}${usable.counts.all > 0 && usableCard(view)}${foundCard(view)}
${isEmpty && (q === '' ? firstSteps(ui) : nothingFound(ui, q))}`,
    ),
  };
}

function usableCard(view: HomeView): Html {
  const { address, q, needs, usable, state, isLater } = view;
  const { counts, nextCursor } = usable;
  const keyOf = ({ kind, namespace, connectionId }: Usable) => `${kind} ${namespace}/${connectionId}`;
  const waiting = new Set(needs.map(keyOf));
  const rows = usable.usable.filter((row) => !waiting.has(keyOf(row)));
  const headings = [['Name'], ['State', 'state'], ['You can'], ['Last used', 'extra'], ['Actions', 'actions']] as const;
  const hrefOf = (changes: Record<string, string>) => {
    const query = new URLSearchParams({ ...(q !== '' && { q }), ...changes });
    return `${address}/${query.size > 0 ? `?${query.toString()}` : ''}`;
  };
  const filters = usableStates
    .filter((name) => counts[name] > 0 || name === state)
    .map((name) => [hrefOf({ state: name }), `${STATES[name]} ${counts[name]}`] as const);
  const chosen = state && { state };
  const more = nextCursor !== null && buttonLink(hrefOf({ ...chosen, cursor: nextCursor }), 'More', { look: 'small' });
  return card(
    'usable',
    'Servers and connections',
    html`${tabs('State', [[hrefOf({}), `All ${counts.all}`], ...filters], hrefOf({ ...chosen }))}
${
  rows.length > 0
    ? table(
        'Servers and connections',
        headings,
        rows.map((row) => usableRow(view, row)),
      )
    : html`<p class="soft">${state || isLater ? 'Nothing is in this state.' : 'All of them need you.'}</p>`
}
${(isLater || more) && html`<nav class="pages" aria-label="Pages">${isLater ? buttonLink(hrefOf({ ...chosen }), 'First page', { look: 'small' }) : html`<span></span>`}${more}</nav>`}`,
  );
}

/** Renders the found targets, and servers of the catalogue with similar words only if the list is empty. */
function foundCard({ address, q, usable, catalogue }: HomeView): Html | null {
  const listed = new Set(usable.usable.map(({ qualifiedName }) => qualifiedName));
  const servers = catalogue.filter(
    ({ qualifiedName, score }) => !listed.has(qualifiedName) && (usable.counts.all === 0 || (score ?? 0) >= ALL_WORDS),
  );
  if (servers.length === 0) return null;
  const all = buttonLink(`${address}/catalogue?${new URLSearchParams({ q }).toString()}`, 'All of them', {
    look: 'small',
  });
  const rows = servers.map(
    ({ displayName = '', qualifiedName = '', description = '' }) =>
      [
        who(displayName, html`<code>${qualifiedName}</code> · ${description}`, {
          href: `${address}/s/${qualifiedName.replace('/', '--')}`,
        }),
      ] as const,
  );
  return card('found', 'In the catalogue', list(rows), { end: all });
}

function placeOf({ address: page, baseUrl }: HomeView, row: Usable) {
  const { kind, namespace, connectionId, qualifiedName, title, connections, waiting, iconUrl } = row;
  const address = qualifiedName ?? (connectionId === undefined ? namespace : `${namespace}/${connectionId}`);
  const name =
    title ?? (kind === 'namespace' ? `${waiting?.connections ?? connections} connections of ${namespace}` : address);
  const path = {
    connection: `c/${namespace}/${encodeURIComponent(connectionId ?? '')}`,
    server: `s/${qualifiedName?.replace('/', '--')}`,
    namespace: `n/${namespace}`,
  }[kind];
  return { address, name, href: `${page}/${path}`, iconUrl: ownIcon(baseUrl, `${page}/../`, iconUrl) };
}

function needRow(view: HomeView, row: Usable): [Html, ...HtmlValue[]] {
  const { address, name, ...place } = placeOf(view, row);
  const state = stateOfRow(row);
  return [who(name, html`<code>${address}</code> · ${state.detail}`, place), state.badge, wayOn(view, row)];
}

function usableRow(view: HomeView, row: Usable): HtmlValue[] {
  const { address, name, ...place } = placeOf(view, row);
  const state = stateOfRow(row);
  return [
    who(name, html`${KINDS[row.kind]} <code>${address}</code>`, place),
    html`${state.badge}<small>${state.detail}</small>`,
    rightsOf(row),
    lastUseOf(row.lastUse),
    wayOn(view, row),
  ];
}

/** Returns the state of a row; for a namespace, the number of its connections with pending steps. */
function stateOfRow(row: Usable): ShownState {
  const { waiting, access } = row;
  if (!waiting) return stateOf(row, { isManager: access.level === 'manage' });
  const { logins, values, connections } = waiting;
  const needs = [
    logins > 0 && `${logins} of ${connections} wait for a login`,
    values > 0 && `${values} of ${connections} wait for a value`,
  ];
  return { badge: badge('Needs you', 'wait'), detail: needs.filter(Boolean).join(', ') };
}

function rightsOf({ access, owner }: Usable): Html {
  const { rule, level, role, grant, tools } = access;
  const may = level === 'manage' ? 'Manage' : `Call ${tools === undefined ? 'all tools' : formatCount(tools, 'tool')}`;
  const why = () => {
    if (rule === 'owner') return 'as its owner';
    if (rule === 'member') return `as ${role} of ${owner.name}`;
    if (!grant) return 'as everybody here';
    const by = grant.grantedBy !== undefined && html` by ${grant.grantedBy}`;
    const through = grant.subject === undefined && ' to everybody';
    return html`granted${through}${by}, ${timeOf(grant.createdAt)}${grant.expiresAt !== undefined && html`, until ${timeOf(grant.expiresAt)}`}`;
  };
  return html`${may} <small>${why()}</small>`;
}

function wayOn(view: HomeView, row: Usable): Html {
  const { status, suspended, access, owner, waiting } = row;
  const { name, href } = placeOf(view, row);
  const link = (to: string, label: string) => buttonLink(to, label, { look: 'small', about: `${label}: ${name}` });
  if (suspended) return html`<span class="soft">Ask the operator</span>`;
  const setup = setupOf(view, `${view.address}/../`, { status }, `ui${href.slice(view.address.length)}`);
  if (setup !== null) return link(setup, status?.state === 'auth_required' ? 'Log in' : 'Enter it');
  if (waiting) return link(`${href}?state=${waiting.logins > 0 ? 'auth_required' : 'input_required'}`, 'Show them');
  const isBroken = status && !['connected', 'disconnected'].includes(status.state);
  if (isBroken && access.level !== 'manage') return html`<span class="soft">Ask the owner, ${owner.name}</span>`;
  return link(href, isBroken ? 'See why' : 'Connect');
}

function invitationRow(view: HomeView, invitation: WaitingInvitation): [Html, ...HtmlValue[]] {
  const { id, organizationName: name, role, expiresAt } = invitation;
  const answerForm = (word: string, label: string, look: string) =>
    formOf(view, `invitations/${id}/${word}`, [], button(label, { look, about: `${label}: ${name}` }));
  return [
    who(name ?? 'An organization', html`invites you, as ${role} until ${timeOf(expiresAt)}`),
    actions(answerForm('accept', 'Accept', 'small primary'), answerForm('decline', 'Decline', 'small ghost')),
  ];
}

const formatCount = (count: number, noun: string) => `${count} ${noun}${count === 1 ? '' : 's'}`;

function firstSteps(ui: string): Html {
  return columns(
    card(
      'first',
      'What to do first',
      list([
        [
          html`<b>Find a server</b><p>Look into the catalogue, add one by its address, or open the address that a colleague gave you.</p>`,
          buttonLink(`${ui}catalogue`, 'Catalogue'),
        ],
        [
          html`<b>Connect your app</b><p>Open the page of a server and choose your app under Connect. The app then sends you here to authorize it.</p>`,
        ],
        [
          html`<b>Keep the overview</b><p>See the apps that may act for you, and revoke their access.</p>`,
          buttonLink(`${ui}../me/access`, 'Your apps'),
        ],
      ]),
    ),
    card(
      'empty',
      'Your servers',
      empty('Nothing here yet', 'Servers that you can use appear here.', buttonLink(`${ui}add`, 'Add a server')),
    ),
  );
}

function nothingFound(ui: string, q: string): Html {
  const catalogue = `${ui}catalogue?${new URLSearchParams({ q }).toString()}`;
  const text = `Nothing that you may use has “${q}” in its name, address or owner.`;
  return html`<section class="card">${empty('Nothing found', text, buttonLink(catalogue, 'Search the catalogue'))}</section>`;
}
