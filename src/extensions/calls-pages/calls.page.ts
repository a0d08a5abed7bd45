import {
  badge,
  button,
  buttonLink,
  card,
  empty,
  facts,
  fieldAs,
  html,
  notice,
  snippet,
  table,
  timeOf,
  type Framed,
  type Html,
  type HtmlValue,
  type InvocationOutcome,
  type State,
} from '../../extension.js';
import { callsPlot } from './calls-plot.js';
import { WINDOW, type CallCounts, type FoundCalls, type StoredCall, type FoundCall } from './calls.repository.js';

export const PAGE_SIZE = 50;

const DAY_HOURS = 24;

export const PERIODS = {
  '24h': { label: 'Last 24 hours', hours: DAY_HOURS, partMs: 3_600_000 },
  '7d': { label: 'Last 7 days', hours: 7 * DAY_HOURS, partMs: 3_600_000 },
  '30d': { label: 'Last 30 days', hours: 30 * DAY_HOURS, partMs: 86_400_000 },
} as const;

export const OUTCOMES: readonly (readonly [value: InvocationOutcome, label: string, state: State])[] = [
  ['ok', 'OK', 'ok'],
  ['toolError', 'Tool error', 'bad'],
  ['rpcError', 'JSON-RPC error', 'bad'],
  ['exception', 'Failed', 'bad'],
  ['denied', 'Denied', 'held'],
  ['canceled', 'Canceled', 'off'],
  ['exceededWall', 'Took too long', 'bad'],
  ['exceededCpu', 'Too much CPU time', 'bad'],
  ['exceededMemory', 'Too much memory', 'bad'],
  ['exceededResponse', 'Response too large', 'bad'],
  ['responseStreamDisconnected', 'Response broke off', 'bad'],
  ['unknown', 'Unknown', 'off'],
];

export interface CallFilters {
  target?: string;
  account?: string;
  tool?: string;
  outcome?: InvocationOutcome;
  since: keyof typeof PERIODS;
  isAll: boolean;
  before?: string;
  call?: string;
}

/** The calls of a page, and one more if there are older calls. */
interface CallsView extends FoundCalls, CallCounts {
  /** Relative path to the root of the service. */
  root: string;
  filters: CallFilters;
  from: Date;
  /** The opened call; undefined if the address does not name one, null if the person cannot see it. */
  opened: StoredCall | null | undefined;
}

export function callsPage(view: CallsView): Framed {
  const { root, filters, from, calls, end, counts, isEstimated, opened } = view;
  const address = `${root}ui/calls`;
  const page = calls.slice(0, PAGE_SIZE);
  const { before, call: _call, ...first } = filters;
  const hrefOf = (changes: Partial<CallFilters> = {}, path = '') =>
    `${address}${path}${queryOf({ ...first, ...changes })}`;
  const next = calls.length > PAGE_SIZE ? page.at(-1)?.id : (end ?? undefined);
  const older = next !== undefined && buttonLink(hrefOf({ before: next }), 'Older', { look: 'small' });
  const newest = before !== undefined && buttonLink(hrefOf(), 'Newest', { look: 'small' });
  const headings = [['Time'], ['Tool'], ['Target'], ['Caller'], ['Outcome', 'state'], ['Duration', 'num']] as const;
  const rows = page.map((call) => rowOf(call, hrefOf({ before, call: call.id })));
  const isFiltered = [filters.target, filters.account, filters.tool, filters.outcome].some(Boolean);
  const emptyList = older
    ? empty(
        'Nothing found yet',
        `None of the newest ${WINDOW} requests matches all filters. Older ones are searched next.`,
      )
    : isFiltered
      ? empty('Nothing found', 'No call in this period matches all filters.', buttonLink(address, 'Show all'))
      : empty('No calls in this period', 'Calls of your apps appear here within seconds.');
  return {
    title: 'Calls',
    asRequest: requestOf(filters),
    head: {
      actions: buttonLink(hrefOf({}, '/csv'), 'Download CSV'),
      lead: 'Calls of the connections and servers that you manage, and your own calls of other connections.',
    },
    body: html`${filtersForm(address, filters)}
${counts.length > 0 && callsPlot(counts, from, PERIODS[filters.since].partMs)}
${opened === null && notice('The call is no longer stored, or is hidden from you.', 'bad')}${opened && openedPart(view, opened, hrefOf({ before }))}
${card(
  'rows',
  'Latest calls',
  html`${rows.length > 0 ? table('Calls, newest first', headings, rows) : emptyList}
${(older || newest) && html`<nav class="pages" aria-label="Pages of calls">${newest || html`<span></span>`}${older}</nav>`}
<p class="soft tail">Logs of busy connections have samples of their calls.${isEstimated && ` Counts are estimates, from a sample of the calls.`}</p>`,
  {
    end: filters.isAll
      ? html`<a href="${hrefOf({ isAll: false })}">Hide protocol requests</a>`
      : html`<span class="soft">without protocol requests</span> <a href="${hrefOf({ isAll: true })}">Show all requests</a>`,
  },
)}`,
  };
}

function requestOf({ isAll, before, call: _call, ...remaining }: CallFilters): string {
  const more = { ...(isAll && { all: 'true' }), ...(before !== undefined && { cursor: before }) };
  return `/calls?${new URLSearchParams({ ...remaining, ...more }).toString()}`;
}

function queryOf({ isAll, since, ...remaining }: CallFilters): string {
  const entries = Object.entries({ ...remaining, ...(since !== '24h' && { since }), ...(isAll && { all: '' }) });
  const query = new URLSearchParams(entries.filter((entry): entry is [string, string] => entry[1] !== undefined));
  return query.size > 0 ? `?${query.toString()}` : '';
}

function filtersForm(address: string, { target, account, tool, outcome, since, isAll }: CallFilters): Html {
  const name = html`maxlength="500" autocapitalize="none" spellcheck="false"`;
  const outcomes = OUTCOMES.map(([value, label]) => [value, label] as const);
  const periods = Object.entries(PERIODS).map(([value, { label }]) => [value, label] as const);
  const placed = html`${name} placeholder="acme/weather"`;
  return html`<form class="filters card" method="get" action="${address}" role="search" aria-label="Calls">${fieldAs({ id: 'target', name: 'target', label: 'Target', content: target, attributes: placed })}${fieldAs({ id: 'account', name: 'account', label: 'Account', content: account, attributes: name })}${fieldAs({ id: 'tool', name: 'tool', label: 'Tool', content: tool, attributes: name })}${fieldAs({ id: 'outcome', name: 'outcome', label: 'Outcome', options: [['', 'All'], ...outcomes], content: outcome })}${fieldAs({ id: 'since', name: 'since', label: 'Period', options: periods, content: since })}${isAll && html`<input type="hidden" name="all" value="">`}${button('Apply', { look: 'primary' })}</form>`;
}

function rowOf(call: FoundCall, href: string): HtmlValue[] {
  const { at, kind, target, exceptions, durationMs } = call;
  return [
    timeOf(at.toISOString()),
    html`<a href="${href}#call"><code>${nameOf(call)}</code></a>`,
    html`${target}<small>${kind}</small>`,
    callerOf(call),
    html`${outcomeOf(call)}${exceptions[0] && html`<small>${exceptions[0].message}</small>`}`,
    `${durationMs} ms`,
  ];
}

const nameOf = ({ tool, method }: FoundCall) => tool ?? method ?? 'a message that cannot be read';

function outcomeOf({ outcome }: FoundCall): Html {
  const [, label, state] = OUTCOMES.find(([value]) => value === outcome) ?? [outcome, outcome, 'off' as const];
  return badge(label, state);
}

function callerOf({ callerId, accountName, credentialKind, credentialName, client }: FoundCall): HtmlValue {
  if (callerId === null) return 'this service';
  const credential =
    credentialKind === 'key'
      ? `key “${credentialName ?? 'revoked'}”`
      : credentialKind === 'session'
        ? 'a browser'
        : (credentialName ?? 'an app that was revoked');
  return html`${accountName ?? 'a deleted account'} <small>${client !== null && `${client}, `}${credential}</small>`;
}

function openedPart({ root }: CallsView, call: StoredCall, closed: string): Html {
  const { id, at, kind, target, method, durationMs, lines, exceptions, payload } = call;
  const [namespace = '', name = ''] = target.split('/');
  const path =
    kind === 'connection'
      ? `ui/c/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`
      : `ui/s/${encodeURIComponent(target.replace('/', '--'))}`;
  const stored = payload
    ? html`${snippet('arguments', 'Arguments', payload.arguments ?? 'not stored')}${snippet('result', 'Result', payload.result ?? 'not stored')}`
    : html`<p class="soft">Arguments and results are not stored, or are shown only to the owner of the server. Slipway stores those of a published server if its owner enables it.</p>`;
  const printed = [
    ...lines.map(({ level, message }) => `${level}: ${message}`),
    ...exceptions.map(({ name: error, message }) => `${error}: ${message}`),
  ];
  return card(
    'call',
    html`Call of <code>${nameOf(call)}</code>`,
    html`${facts([
      ['Call', html`<code>${id}</code>`],
      ['Time', timeOf(at.toISOString())],
      ['Target', html`<a href="${root}${path}">${target}</a>, ${kind}`],
      ['Caller', callerOf(call)],
      ['Method', html`<code>${method ?? 'unknown'}</code>`],
      ['Outcome', outcomeOf(call)],
      ['Duration', `${durationMs} ms`],
    ])}
${stored}
${printed.length > 0 && snippet('lines', 'Lines and errors', printed.join('\n'))}`,
    { end: buttonLink(closed, 'Close', { look: 'small' }) },
  );
}
