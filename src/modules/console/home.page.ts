/**
 * The page of `/ui/`: what waits for the person, and what the person may use. Each row has its state as a sign, a word and a time,
 * the rights of the person, the last use, and at most one way on. Of a reason it has the kind alone, as the service does.
 */
import { formOf, withReason, type FormsView } from '../../platform/pages/forms.js';
import { Html, html } from '../../platform/pages/html.js';
import type { Framed } from '../../platform/pages/frame.js';
import { timeOf } from '../../platform/pages/times.js';
import type { WaitingInvitation } from '../auth/members.service.js';
import type { AccessRequestsService } from '../grants/access-requests.service.js';
import type { UsableService } from '../grants/usable/usable.service.js';
import { stateOf } from './states.js';

type UsableList = Awaited<ReturnType<UsableService['list']>>;
type Usable = UsableList['usable'][number];
type AccessRequest = Awaited<ReturnType<AccessRequestsService['list']>>['requests'][number];

/** Sections of what one may use, in the order of the page. */
export const sections = ['mine', 'granted', 'public'] as const;
export type Section = (typeof sections)[number];

const HEADINGS: Record<Section, string> = {
  mine: 'Ready to use: yours and of your organizations',
  granted: 'Ready to use: granted to you',
  public: 'Found in the catalogue',
};

/** Sentences for the word in the address after a form. */
export const DONE: Record<string, string> = {
  granted: 'Access is granted. The account may call the server now.',
  refused: 'The request is refused. The account reads your sentence.',
  deleted: 'The connection is deleted.',
  joined: 'You are a member of the organization.',
  declined: 'The invitation is declined.',
};

/** Content of the page. */
export interface HomeView extends FormsView {
  /** Address of the service, to make links of it relative. */
  baseUrl: string;
  /** The searched text; '' for everything. */
  q: string;
  needs: Usable[];
  requests: AccessRequest[];
  invitations: WaitingInvitation[];
  /** Number of open requests and invitations, including those that are not shown. */
  waitingCount: number;
  lists: [Section, UsableList][];
  notice: string | null;
  /** The list of the operator's first run; null for others, and while it searches. */
  firstRun: Html | null;
}

/** The page of `/ui/`. */
export function homePage(view: HomeView): Framed {
  const { address, q, needs, requests, invitations, waitingCount, lists, notice } = view;
  const ui = `${address}/`;
  const isEmpty = requests.length === 0 && lists.every(([, { usable }]) => usable.length === 0);
  const count = needs.length + waitingCount;
  const [[section] = ['mine']] = lists;
  const params = new URLSearchParams({ ...(section !== 'mine' && { section }), ...(q !== '' && { q }) });
  return {
    title: 'Home',
    notice,
    asRequest: `/accounts/me/usable${params.size > 0 ? `?${String(params)}` : ''}`,
    body: withReason(
      view,
      html`<form method="get" action="${ui}" role="search"><p><label for="q">Find by name, address or owner</label>
<input id="q" name="q" type="search" maxlength="255" value="${q}"></p><p><button class="plain">Find</button></p></form>
<p><a href="${ui}add">Add a server</a></p>
${view.firstRun}
${
  count > 0 &&
  html`<section aria-labelledby="needs"><h2 id="needs">Needs you (${count})</h2>
<ul class="rows">${invitations.map((invitation) => invitationRow(view, invitation))}${requests.map((request) => requestRow(view, request))}${needs.map((row) => usableRow(view, row))}</ul></section>`
}
${lists.map(([name, list]) => usableSection(view, name, list, needs))}
${isEmpty && (q === '' ? firstSteps(ui) : html`<section><p>Nothing that you may use has “${q}” in its name, address or owner.</p></section>`)}`,
    ),
  };
}

function usableSection(view: HomeView, section: Section, list: UsableList, needs: Usable[]): Html | null {
  const keyOf = ({ kind, namespace, connectionId }: Usable) => `${kind} ${namespace}/${connectionId}`;
  const waiting = new Set(needs.map(keyOf));
  const rows = list.usable.filter((row) => !waiting.has(keyOf(row)));
  if (rows.length === 0 && list.nextCursor === null) return null;
  const { address, q } = view;
  const more = new URLSearchParams({ ...(q !== '' && { q }), section, cursor: list.nextCursor ?? '' });
  return html`<section aria-labelledby="${section}"><h2 id="${section}">${HEADINGS[section]}</h2>
<ul class="rows">${rows.map((row) => usableRow(view, row))}</ul>
${list.nextCursor !== null && html`<p><a href="${address}/?${String(more)}">More</a></p>`}</section>`;
}

function usableRow({ address: page, baseUrl }: HomeView, row: Usable): Html {
  const { kind, namespace, connectionId, qualifiedName, title, connections, lastUse } = row;
  const address = qualifiedName ?? (connectionId === undefined ? namespace : `${namespace}/${connectionId}`);
  const name = title ?? (kind === 'namespace' ? `${connections} connections of ${namespace}` : address);
  const use =
    lastUse &&
    html`last used by you ${timeOf(lastUse.at)}, with ${lastUse.client ?? (lastUse.kind === 'session' ? 'a browser' : 'a program')}`;
  return html`<li><div><strong>${name}</strong> <code>${address}</code>
<span class="hint">${stateOf(row, { isManager: row.access.level === 'manage' })}</span>
<span class="hint">You may ${rightsOf(row)}; ${use ?? 'not used by you yet'}.</span></div>
${wayOn(row, `${page}/`, baseUrl, name)}</li>\n`;
}

function rightsOf({ access, owner }: Usable): Html {
  const { rule, level, role, grant, tools } = access;
  const may =
    level === 'manage'
      ? 'manage and call it'
      : `call ${tools === undefined ? 'all its tools' : formatCount(tools, 'tool')}`;
  if (rule === 'owner') return html`${may}: you are its owner`;
  if (rule === 'member') return html`${may}, as ${role} of ${owner?.name}`;
  if (!grant) return html`${may}, as everybody here`;
  const by = grant.grantedBy !== undefined && html` by ${grant.grantedBy}`;
  const through = grant.subject === undefined && ' to everybody';
  return html`${may}, granted${through}${by} on ${timeOf(grant.createdAt)}${grant.expiresAt !== undefined && html` until ${timeOf(grant.expiresAt)}`}`;
}

/** The one way on of a row. */
function wayOn(
  { kind, namespace, connectionId, qualifiedName, status, suspended, access, owner }: Usable,
  ui: string,
  baseUrl: string,
  name: string,
): Html {
  const button = (href: string, label: string) =>
    html`<a class="button" href="${href}" aria-label="${label}: ${name}">${label}</a>`;
  if (suspended) return html`<span class="hint">Ask the operator of this service.</span>`;
  if (status?.setupUrl !== undefined) {
    const setup = `${ui}..${status.setupUrl.slice(baseUrl.length)}`;
    return button(setup, status.state === 'auth_required' ? 'Log in' : 'Enter it');
  }
  const isBroken = status && !['connected', 'disconnected'].includes(status.state);
  if (isBroken && access.level !== 'manage')
    return html`<span class="hint">Ask the owner${owner && html`, ${owner.name}`}.</span>`;
  const place = {
    connection: `c/${namespace}/${encodeURIComponent(connectionId ?? '')}`,
    server: `s/${qualifiedName?.replace('/', '--')}`,
    namespace: `n/${namespace}`,
  }[kind];
  return button(`${ui}${place}`, 'Connect');
}

function requestRow(view: HomeView, { id, qualifiedName, account, text, createdAt }: AccessRequest): Html {
  const form = `requests/${encodeURIComponent(qualifiedName)}/${id}`;
  const reason = { name: 'refuse', label: 'Or refuse, with a reason', attributes: html`maxlength="500" required` };
  return html`<li><div><strong>${account.name}</strong> asks for access to <code>${qualifiedName}</code>
<span class="hint">${timeOf(createdAt)}: “${text}”</span></div>
<div>${formOf(view, `${form}/grant`, [], html`<button aria-label="Grant: ${account.name} may call ${qualifiedName}">Grant</button>`)}
${formOf(view, `${form}/refuse`, [reason], html`<button class="plain" aria-label="Refuse ${account.name}: ${qualifiedName}">Refuse</button>`)}</div></li>\n`;
}

function invitationRow(view: HomeView, { id, organizationName: name, role, expiresAt }: WaitingInvitation): Html {
  const button = (answer: string, label: string, look: Html | false) =>
    formOf(
      view,
      `invitations/${id}/${answer}`,
      [],
      html`<button${look} aria-label="${label}: ${name}">${label}</button>`,
    );
  return html`<li><div><strong>${name}</strong> invites you, as ${role}
<span class="hint">until ${timeOf(expiresAt)}</span></div>
<div>${button('accept', 'Accept', false)}${button('decline', 'Decline', html` class="plain"`)}</div></li>\n`;
}

const formatCount = (count: number, noun: string) => `${count} ${noun}${count === 1 ? '' : 's'}`;

function firstSteps(ui: string): Html {
  return html`<section aria-labelledby="first"><h2 id="first">What to do first</h2>
<ol>
<li>Find an MCP server in the <a href="${ui}catalogue">catalogue</a>, <a href="${ui}add">add one</a> by its address, or get its address from a colleague who lets you use it.</li>
<li>Open its page and choose your app under Connect. The app then sends you to this service to authorize it.</li>
<li>See and revoke the access of your apps under <a href="${ui}../me/access">Apps that may act for you</a>.</li>
</ol></section>`;
}
