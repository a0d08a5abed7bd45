/**
 * The tools on the page of a connection, as the model sees them, with a way to try each. Whoever owns it sees which are kept back.
 * A server that has listed none yet is "not known yet", never without tools.
 */
import { html, type Html } from '../../../platform/pages/html.js';
import type { ListItem } from '../../../mcp/protocol/list-pages.js';
import { annotationsOf, shortened, type Tool } from './tool-try.page.js';

/** Tools of one page of the list. */
const PAGE_SIZE = 50;

/** Members of the query that the list reads. */
export interface ToolsQuery {
  /** Words that stand in the name, title or description. */
  q?: unknown;
  /** From 1 on. */
  page?: unknown;
  /** The server is to be asked, also if it was never asked before. */
  ask?: unknown;
}

/** A tool of the list; one that is kept back has its name only. */
type Row = Tool & { isWithheld?: true };

/**
 * @param address the address of the page
 * @param withheld names of tools that are not offered; none for guests
 */
export function toolsPart(
  address: string,
  { tools, withheld }: { tools: ListItem[] | null; withheld: string[] },
  query: ToolsQuery,
): Html {
  if (!tools) {
    return html`<section aria-labelledby="tools"><h2 id="tools">Tools</h2>
<p>Not known yet: the server has not listed its tools.${query.ask !== undefined && ' It did not answer now.'}</p>
<p><a href="${address}?ask=tools#tools">Ask it now</a></p></section>`;
  }
  const q = typeof query.q === 'string' ? query.q.trim().slice(0, 255) : '';
  const rows: Row[] = [
    ...tools.map(({ text }) => JSON.parse(text) as Row),
    ...withheld.map((name) => ({ name, isWithheld: true as const })),
  ];
  const matching = rows.filter((row) =>
    [row.name, row.title, row.description].some(
      (text) => typeof text === 'string' && text.toLowerCase().includes(q.toLowerCase()),
    ),
  );
  const pages = Math.max(1, Math.ceil(matching.length / PAGE_SIZE));
  const page = Math.min(pages, Math.max(1, Math.floor(Number(query.page)) || 1));
  const pageRows = matching.slice((page - 1) * PAGE_SIZE, page * PAGE_SIZE);
  const link = (to: number, label: string) =>
    to >= 1 &&
    to <= pages &&
    html`<a href="${address}?${new URLSearchParams({ q, page: `${to}` }).toString()}#tools">${label}</a> `;
  const count = withheld.length > 0 ? `${tools.length} of ${rows.length} offered` : tools.length;
  return html`<section aria-labelledby="tools"><h2 id="tools">Tools (${count})</h2>
<form role="search" method="get" action="${address}"><p><label>Find a tool<input type="search" name="q" value="${q}" maxlength="255"></label></p><p><button type="submit">Find</button></p></form>
${rows.length === 0 && html`<p>The server lists no tool.</p>`}
${rows.length > 0 && matching.length === 0 && html`<p>No tool has these words.</p>`}
<dl>${pageRows.map((row) => rowOf(row, address))}</dl>
${pages > 1 && html`<p>${link(page - 1, 'Previous')}Page ${page} of ${pages} ${link(page + 1, 'Next')}</p>`}</section>`;
}

function rowOf(tool: Row, page: string): Html {
  const { name, title, description, isWithheld } = tool;
  if (isWithheld) return html`<div><dt>${name}</dt><dd>⊘ not offered</dd></div>`;
  // A browser would take these for a folder.
  const isPath = !['', '.', '..'].includes(name);
  const address = `${page}/tools/${encodeURIComponent(name)}`;
  return html`<div><dt>${isPath ? html`<a href="${address}">${name}</a>` : name}${typeof title === 'string' && title !== name && ` · ${title}`}</dt>
<dd>${typeof description === 'string' && shortened(description)} <span class="hint">${annotationsOf(tool).join(', ')}</span></dd></div>`;
}
