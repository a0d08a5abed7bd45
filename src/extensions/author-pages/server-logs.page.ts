import {
  badge,
  button,
  buttonLink,
  card,
  details,
  empty,
  fieldAs,
  type Framed,
  html,
  type Html,
  type InvocationOutcome,
  type Logs,
  notice,
  tile,
  timeOf,
} from '../../extension.js';
import type { OwnServer } from './own-servers.service.js';
import { serverTabs } from './server-tabs.js';

export type LogFilters = Partial<Record<'search' | 'outcome' | 'tool', string>>;

export type RuntimeLog = Awaited<ReturnType<Logs['search']>>;
type Invocation = RuntimeLog['invocations'][number];

export const OUTCOMES: readonly (readonly [value: InvocationOutcome, label: string])[] = [
  ['ok', 'Succeeded'],
  ['toolError', 'Tool error'],
  ['rpcError', 'JSON-RPC error'],
  ['exception', 'Failed'],
  ['denied', 'Denied'],
  ['canceled', 'Canceled'],
  ['exceededWall', 'Took too long'],
  ['exceededCpu', 'Too much CPU time'],
  ['exceededMemory', 'Too much memory'],
  ['exceededResponse', 'Response too large'],
  ['responseStreamDisconnected', 'Response broke off'],
  ['unknown', 'Unknown'],
];

export const PAGE_SIZE = 20;

export const FOLLOWED_SIZE = 50;

/** Limit of lines on a live page: nobody can read more while they change. */
const LINES_MAX = 200;

/** @param fault why the filters are rejected; null if they are valid */
export function logsPage(
  address: string,
  server: OwnServer,
  filters: LogFilters,
  { invocations, total, totalIsExact }: RuntimeLog,
  fault: string | null,
): Framed {
  const query = new URLSearchParams(filters).toString();
  const last = invocations.length === PAGE_SIZE ? invocations.at(-1) : undefined;
  const older = last && `?${new URLSearchParams({ ...filters, before: last.id }).toString()}`;
  const emptyList =
    query === ''
      ? empty('No requests yet', 'Requests and the lines that the server prints appear here within seconds.')
      : empty('Nothing found', 'No request matches all filters.');
  return {
    title: server.detail.displayName,
    asRequest: `/servers/${encodeURIComponent(server.name)}/logs${query && `?${query}`}`,
    crumbs: [['Catalogue', 'ui/catalogue'], [server.name, `ui/s/${encodeURIComponent(server.slug)}`], ['Logs']],
    head: {
      tile: tile(server.detail.displayName, { look: 'large' }),
      lead: html`<code>${server.name}</code>`,
      actions: html`${fault === null && buttonLink(`${address}/logs?${new URLSearchParams({ ...filters, follow: '1' }).toString()}`, 'Follow', { look: 'primary' })}${buttonLink(`${address}/../../calls?target=${encodeURIComponent(server.name)}`, 'All calls')}`,
    },
    tabs: serverTabs(address, server.name, '/logs', server.mayManage),
    body: html`${fault !== null && notice(`${fault}.`, 'bad')}
<form class="filters card" method="get" role="search" aria-label="Logs">${fieldAs({ id: 'search', name: 'search', label: 'Text', content: filters.search, attributes: html`maxlength="1000"` })}${fieldAs({ id: 'outcome', name: 'outcome', label: 'Outcome', options: [['', 'All'], ...OUTCOMES], content: filters.outcome })}${fieldAs({ id: 'tool', name: 'tool', label: 'Tool', content: filters.tool, attributes: html`maxlength="200" autocapitalize="none" spellcheck="false"` })}${button('Find', { look: 'primary' })}</form>
${card(
  'requests',
  'Requests',
  html`${invocations.length === 0 ? emptyList : invocations.map(entryOf)}
${older !== undefined && html`<nav class="pages" aria-label="More requests"><span></span><a class="button small" href="${older}" rel="next">Older</a></nav>`}`,
  { count: totalIsExact ? total : `${total}+` },
)}`,
  };
}

/** Renders the log of a page that fetches it again while it is open. */
export function followedLogPage(
  address: string,
  server: OwnServer,
  filters: LogFilters,
  { invocations }: RuntimeLog,
): Framed {
  const { title, asRequest, crumbs, head, tabs } = logsPage(address, server, filters, NO_LOG, null);
  const query = new URLSearchParams(filters).toString();
  const lines = invocations
    .flatMap((invocation) => {
      const { at, tool, rpcMethod, request, duration, response } = invocation;
      const name = tool ?? rpcMethod ?? request.method;
      const end = {
        time: at,
        level: response.outcome === 'ok' ? 'ok' : 'error',
        message: `${labelOf(invocation)}, ${duration.wallMs} ms`,
      };
      return [...linesOf(invocation).reverse(), end].map((line) => ({ ...line, message: `${name}: ${line.message}` }));
    })
    .sort((a, b) => b.time.localeCompare(a.time));
  const stated = Object.entries(filters).map(([name, value]) => html` <code>${name}=${value}</code>`);
  return {
    title,
    asRequest,
    crumbs,
    tabs,
    head: {
      ...head,
      badge: badge('Following', 'busy'),
      actions: buttonLink(`${address}/logs${query && `?${query}`}`, 'Pause', { look: 'primary' }),
    },
    isLive: `${address}/logs/stream${query && `?${query}`}`,
    body: card(
      'lines',
      'Lines, newest first',
      html`${lines.length > 0 ? html`<ol class="log" tabindex="0" aria-label="Log lines, in UTC, newest first">${lines.slice(0, LINES_MAX).map(rowOf)}</ol>` : empty('No lines yet', 'New requests and lines appear here by themselves.')}
<p class="soft tail">At most ${LINES_MAX} lines of the newest ${FOLLOWED_SIZE} requests${stated.length > 0 && html` with${stated}`}. Pause to search, and to open requests.</p>`,
      { end: html`<span class="soft">UTC</span>` },
    ),
  };
}

const NO_LOG: RuntimeLog = { invocations: [], total: 0, totalIsExact: true, leftOut: 0 };

interface Line {
  time: string;
  level: string;
  message: string;
}

function labelOf({ response }: Invocation): string {
  return OUTCOMES.find(([value]) => value === response.outcome)?.[1] ?? response.outcome;
}

function linesOf({ logs, exceptions }: Invocation): Line[] {
  return [
    ...logs.map(({ at: time, level, message }) => ({ time, level, message })),
    ...exceptions.map(({ at: time, name, message }) => ({ time, level: 'error', message: `${name}: ${message}` })),
  ].sort((a, b) => a.time.localeCompare(b.time));
}

const LOOKS: Partial<Record<string, string>> = { ok: 'ok', error: 'bad', warn: 'wait' };

function rowOf({ time, level, message }: Line): Html {
  const look = LOOKS[level] ?? '';
  return html`<li class="${look}"><time datetime="${time}">${time.slice(11, 23)}</time><b class="${look}">${level}</b><span>${message}</span></li>\n`;
}

function entryOf(invocation: Invocation): Html {
  const { at, tool, rpcMethod, request, response, duration, caller, payload, leftOut } = invocation;
  const label = labelOf(invocation);
  const state = response.outcome === 'ok' ? 'ok' : response.outcome === 'unknown' ? 'off' : 'bad';
  const lines = linesOf(invocation);
  const summary = html`<code>${tool ?? rpcMethod ?? request.method}</code> ${badge(label, state)} ${timeOf(at)}, ${duration.wallMs} ms${caller?.account.name && `, ${caller.account.name}`}${lines.length > 0 && `, ${lines.length} ${lines.length === 1 ? 'line' : 'lines'}`}`;
  const rows = lines.map(rowOf);
  const body = html`${rows.length > 0 ? html`<ol class="log" tabindex="0" aria-label="Log lines, in UTC">${rows}</ol>` : html`<p class="soft">It printed nothing.</p>`}
${leftOut > 0 && html`<p class="soft">${leftOut} more lines were not stored.</p>`}
${payload && html`<pre tabindex="0" aria-label="Arguments">${payload.arguments ?? ''}</pre><pre tabindex="0" aria-label="Result">${payload.result ?? ''}</pre>`}`;
  return details(summary, body, state === 'bad');
}
