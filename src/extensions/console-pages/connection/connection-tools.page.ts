/** A server that has not listed its tools yet is shown as "not known yet", not as one without tools. */
import {
  annotationsOf,
  badge,
  buttonLink,
  card,
  empty,
  html,
  list,
  needsTick,
  pager,
  search,
  shortened,
  type Html,
  type ListedTool,
} from '../../../extension.js';

const PAGE_SIZE = 50;

export interface ToolsQuery {
  q?: unknown;
  /** Number of the page, from 1. */
  page?: unknown;
  /** Set to query the server, even for the first time. */
  ask?: unknown;
}

type Row = ListedTool & { isWithheld?: true };

/**
 * @param address the address of the page
 * @param withheld names of tools that are not offered; none for grantees
 */
export function toolsPart(
  address: string,
  { tools, withheld }: { tools: ListedTool[] | null; withheld: string[] },
  query: ToolsQuery,
): Html {
  if (!tools) {
    const text = html`Not known yet: the server has not listed its tools.${query.ask !== undefined && ' It did not answer now.'}`;
    const ask = buttonLink(`${address}?ask=tools#tools`, 'Ask it now');
    return card('tools', 'Tools', empty('No list of tools', text, ask));
  }
  const q = typeof query.q === 'string' ? query.q.trim().slice(0, 255) : '';
  const rows: Row[] = [...tools, ...withheld.map((name) => ({ name, isWithheld: true as const }))];
  const matching = rows.filter((row) =>
    [row.name, row.title, row.description].some(
      (text) => typeof text === 'string' && text.toLowerCase().includes(q.toLowerCase()),
    ),
  );
  const pages = Math.max(1, Math.ceil(matching.length / PAGE_SIZE));
  const page = Math.min(pages, Math.max(1, Math.floor(Number(query.page)) || 1));
  const pageRows = matching.slice((page - 1) * PAGE_SIZE, page * PAGE_SIZE);
  const hrefOf = (to: number) => `${address}?${new URLSearchParams({ q, page: `${to}` }).toString()}#tools`;
  return card(
    'tools',
    'Tools',
    html`${search('Find a tool', q, { action: address })}
${rows.length === 0 && html`<p class="soft">The server lists no tool.</p>`}
${rows.length > 0 && matching.length === 0 && html`<p class="soft">No tool has these words.</p>`}
${list(pageRows.map((row) => rowOf(row, address)))}
${pager('tools', { currentPage: page, totalPages: pages }, hrefOf)}`,
    { count: withheld.length > 0 ? `${tools.length} of ${rows.length} offered` : tools.length },
  );
}

function rowOf(tool: Row, page: string): [Html, Html] {
  const { name, title, description, isWithheld } = tool;
  if (isWithheld) return [html`<code>${name}</code>`, badge('Not offered', 'off')];
  // A browser would treat these as directories.
  const isPath = !['', '.', '..'].includes(name);
  const address = `${page}/tools/${encodeURIComponent(name)}`;
  const label = html`<code>${name}</code>`;
  return [
    html`${isPath ? html`<a href="${address}">${label}</a>` : label}${typeof title === 'string' && title !== name && ` · ${title}`}
<p class="clamped">${typeof description === 'string' && shortened(description)}</p>`,
    toolBadge(tool),
  ];
}

export function toolBadge(tool: ListedTool): Html {
  return html`${tool.needsElicitation === true && badge('Only in apps that can ask you')} ${badge(annotationsOf(tool).join(', '), needsTick(tool) ? 'wait' : 'ok')}`;
}
