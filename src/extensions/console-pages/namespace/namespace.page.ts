import {
  actions,
  badge,
  button,
  buttonLink,
  card,
  columns,
  empty,
  fieldAs,
  formOf,
  html,
  notice,
  popup,
  snippet,
  stateOf,
  table,
  tile,
  timeOf,
  who,
  withReason,
  type Connections,
  type FormsView,
  type Framed,
  type GrantRef,
  type Html,
  type HtmlValue,
} from '../../../extension.js';
import { queryOf, STATES, type ConnectionFilters } from './connection-filters.js';

type Connection = Awaited<ReturnType<Connections['list']>>['connections'][number];

export const PAGE_SIZE = 50;

const METADATA_MAX = 4;
const VALUE_CHARS_MAX = 60;

export const DONE = { deleted: 'The connection is deleted.' };

interface Listing {
  filters: ConnectionFilters;
  /** The cursor of the current page; undefined on the first page. */
  cursor: string | undefined;
  /** Number of connections by state, regardless of the filters. */
  counts: Map<string, number>;
  mayDelete: boolean;
  connections: Connection[];
  nextCursor: string | null;
  lastCalls: Map<string, Date>;
  /** The reason why the filters are rejected; null if they are valid. */
  problem: string | null;
}

interface NamespaceView extends FormsView {
  root: string;
  name: string;
  grant: GrantRef | undefined;
  connect: Html;
  /** Null if the person cannot read the connections. */
  listing: Listing | null;
}

export function namespacePage(view: NamespaceView): Framed {
  const { name, grant, connect, listing } = view;
  const query = listing && queryOf(listing.filters, { limit: String(PAGE_SIZE) });
  return {
    title: name,
    asRequest: `/connect/${encodeURIComponent(name)}${query === null ? '' : `?${query}`}`,
    crumbs: [['Home', 'ui/'], [name]],
    head: { tile: tile(name, { look: 'large' }), badge: badge('Namespace') },
    body: withReason(
      view,
      html`${listing && connectionsPart(view, listing)}${columns(
        connect,
        card(
          'what',
          'One address for all',
          html`<p>All connections of the namespace <code>${name}</code> as one MCP server. Its tools are named
<code>connection__tool</code>.</p>
<p>You may ${grant?.tools ? html`call these tools: ${grant.tools.join(', ')}` : 'call all tools'}.</p>`,
        ),
      )}`,
    ),
  };
}

function connectionsPart(view: NamespaceView, listing: Listing): Html {
  const { address, root } = view;
  const { filters, cursor, counts, connections, nextCursor, problem } = listing;
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  if (total === 0) {
    const add = buttonLink(`${root}ui/add`, 'Add a server');
    return card(
      'connections',
      'Connections',
      empty('No connections yet', 'Connections of this namespace appear here.', add),
    );
  }
  const headings = [['Connection'], ['State', 'state'], ['Metadata'], ['Last call'], ['Actions', 'actions']] as const;
  const hrefOf = (more: Record<string, string> = {}) => `${address}?${queryOf(filters, more)}`;
  const first = cursor !== undefined && buttonLink(hrefOf(), 'First page', { look: 'small' });
  const next = nextCursor !== null && buttonLink(hrefOf({ cursor: nextCursor }), 'Next', { look: 'small' });
  const rows = connections.map((connection) => rowOf(view, listing, connection));
  const body =
    rows.length > 0
      ? table('Connections', headings, rows)
      : empty('Nothing found', 'No connection matches all filters.', buttonLink(address, 'Show all'));
  return html`${problem !== null && notice(`${problem}.`, 'bad')}${filtersForm(view, listing)}
${card('connections', 'Connections', html`${body}${(first || next) && html`<nav class="pages" aria-label="Pages of connections"><span>${PAGE_SIZE} a page</span>${actions(first, next)}</nav>`}`, { count: total })}`;
}

function filtersForm({ address }: NamespaceView, { filters, counts }: Listing): Html {
  const { state, name, metadata } = filters;
  const options = Object.entries(STATES).map(
    ([value, label]) => [value, `${label} (${counts.get(value) ?? 0})`] as const,
  );
  const chosen = metadata.map(({ key, value }, at) => {
    const remaining = queryOf({ ...filters, metadata: metadata.filter((_, i) => i !== at) });
    const about = `Remove the filter ${key}=${value}`;
    return html`<input type="hidden" name="metadata.${key}" value="${value}">${buttonLink(`${address}?${remaining}`, `${shorten(`${key}=${value}`, VALUE_CHARS_MAX)} ×`, { look: 'small', about })}`;
  });
  return html`<form class="filters card" method="get" action="${address}" role="search" aria-label="Connections">${fieldAs({ id: 'state', name: 'state', label: 'State', options: [['', 'All'], ...options], content: state })}${fieldAs({ id: 'name', name: 'name', label: 'Whole name', content: name, attributes: html`maxlength="255"` })}${fieldAs({ id: 'metadata', name: 'metadata', label: 'Metadata', attributes: html`placeholder="plan=pro" maxlength="1000" autocapitalize="none" spellcheck="false"` })}${button('Find', { look: 'primary' })}${chosen.length > 0 && html`<div class="wide">${actions(chosen)}</div>`}</form>`;
}

function rowOf(view: NamespaceView, { filters, mayDelete, lastCalls }: Listing, connection: Connection): HtmlValue[] {
  const { root, address, name: namespace, rejected } = view;
  const { connectionId, name, iconUrl, metadata, status, suspended } = connection;
  const page = `${root}ui/c/${encodeURIComponent(namespace)}/${encodeURIComponent(connectionId)}`;
  const state = stateOf({ status, suspended }, { isManager: true });
  const lastCall = lastCalls.get(connectionId);
  const members = Object.entries(metadata);
  const icon = iconUrl?.startsWith('data:image/') ? iconUrl : null;
  const typed = {
    name: 'typed',
    label: html`Type the id <strong>${connectionId}</strong>`,
    attributes: html`autocomplete="off" spellcheck="false" required`,
  };
  const isRejected = rejected?.name === 'delete' && rejected.id === connectionId;
  return [
    who(name, html`<code>${connectionId}</code>`, { href: page, iconUrl: icon }),
    html`${state.badge}<small>${state.detail}</small>${status.message !== undefined && status.reason !== 'uplink_waiting' && html`<small>${shorten(status.message, 200)}</small>`}`,
    html`${members.slice(0, METADATA_MAX).map(([key, value]) => html`<code>${key}=${shorten(textOf(value), VALUE_CHARS_MAX)}</code> `)}${members.length > METADATA_MAX && html`<small>and ${members.length - METADATA_MAX} more</small>`}`,
    lastCall
      ? html`<a href="${root}ui/calls?${new URLSearchParams({ target: `${namespace}/${connectionId}` }).toString()}">${timeOf(lastCall.toISOString())}</a>`
      : 'Never',
    html`${status.setupUrl !== undefined && popup('Copy setup link', snippet(`setup-${connectionId}`, `Setup link of ${connectionId}`, status.setupUrl))}${formOf(view, 'check', [], button('Check', { look: 'small', about: `Check: ${name}` }), { action: `${page}/check` })}${
      mayDelete &&
      popup(
        html`Delete<span class="hidden"> ${name}</span>`,
        formOf(view, 'delete', [typed], button('Delete this connection', { look: 'danger primary' }), {
          id: connectionId,
          action: `${address}/delete?${queryOf(filters)}`,
        }),
        isRejected,
      )
    }`,
  ];
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function shorten(text: string, max: number): string {
  return text.length > max ? `${text.slice(0, max).toWellFormed()}…` : text;
}
