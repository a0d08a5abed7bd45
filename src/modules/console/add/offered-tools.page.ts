/**
 * The form of the tools that a connection offers: a tick for each, with what it says of itself. It works without scripts: its
 * buttons `ticks=all`, `reads` and `none` show the form again, {@link ticksAfter} has the ticks then, and one stores them. A tool that a search hides, or that is on
 * another page, keeps its tick in a hidden input.
 */
import { html, type Html } from '../../../platform/pages/html.js';
import { annotationsOf, needsTick, shortened, type Tool } from '../connection/tool-try.page.js';

/** Tools of one page of the form. */
const PAGE_SIZE = 50;

/** The names that are ticked after a button was pressed. */
export function ticksAfter(form: URLSearchParams, tools: Tool[]): Set<string> {
  const names = (list: Tool[]) => new Set(list.map(({ name }) => name));
  switch (form.get('ticks')) {
    case 'all':
      return names(tools);
    case 'reads':
      return names(tools.filter((tool) => !needsTick(tool)));
    case 'none':
      return new Set();
    default: {
      const sent = new Set(form.getAll('tool'));
      return names(tools.filter(({ name }) => sent.has(name)));
    }
  }
}

/** The choice of tools as it was sent last. */
export interface OfferedTools {
  token: Html;
  /** The address of the page. */
  address: string;
  ticked: ReadonlySet<string>;
  /** Words of the search. */
  q: string;
  /** From 1 on. */
  page: number;
  /** The server was just added. False if the choice of a connection that exists is changed. */
  isAdding: boolean;
}

export function offeredToolsForm(
  tools: Tool[],
  { token, address, ticked, q, page: requestedPage, isAdding }: OfferedTools,
): Html {
  const words = q.toLowerCase();
  const isFound = ({ name, title, description }: Tool) =>
    [name, title, description].some((text) => typeof text === 'string' && text.toLowerCase().includes(words));
  const matching = tools.filter(isFound);
  const pages = Math.max(1, Math.ceil(matching.length / PAGE_SIZE));
  const page = Math.min(pages, Math.max(1, Math.floor(requestedPage) || 1));
  const pageTools = matching.slice((page - 1) * PAGE_SIZE, page * PAGE_SIZE);
  const isShown = new Set(pageTools);
  const hidden = tools
    .filter((tool) => ticked.has(tool.name) && !isShown.has(tool))
    .map(({ name }) => html`<input type="hidden" name="tool" value="${name}">`);
  const button = (value: string, label: string) =>
    html`<button type="submit" name="ticks" value="${value}" class="plain">${label}</button> `;
  const pageButton = (other: number, label: string) =>
    other >= 1 &&
    other <= pages &&
    html`<button type="submit" name="page" value="${other}" class="plain">${label}</button> `;
  return html`<form method="post" class="choice" action="${address}">${token}${hidden}${!isAdding && html`<input type="hidden" name="from" value="settings">`}
<p><label for="q">Find a tool</label><input id="q" type="search" name="q" value="${q}" maxlength="255"></p>
<p class="row">${button('find', 'Find')}${button('all', 'Tick all')}${button('reads', 'Tick what reads only')}${button('none', 'Tick none')}</p>
<fieldset><legend>Tools (${ticked.size} of ${tools.length} ticked)</legend>
${matching.length === 0 && html`<p>No tool has these words.</p>`}
${pageTools.map(
  (
    tool,
  ) => html`<p><label><input type="checkbox" name="tool" value="${tool.name}"${ticked.has(tool.name) && html` checked`}> <b>${tool.name}</b></label>
${typeof tool.description === 'string' && shortened(tool.description)} <span class="hint">${annotationsOf(tool).join(', ')}</span></p>`,
)}</fieldset>
${pages > 1 && html`<p class="row">${pageButton(page - 1, 'Previous')}Page ${page} of ${pages} ${pageButton(page + 1, 'Next')}</p>`}
<p><button type="submit" formaction="${address}/save">${isAdding ? 'Go on: who may call it' : 'Save the choice'}</button></p></form>`;
}
