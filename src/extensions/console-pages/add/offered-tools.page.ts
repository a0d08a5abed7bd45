/**
 * The form of the tools that a connection offers: a checkbox for each, with its description. It works without scripts:
 * the buttons `ticks=all`, `reads` and `none` render the form again, with the ticks of {@link ticksAfter}; another
 * button saves.
 */
import { actions, button, html, needsTick, shortened, type Html, type ListedTool } from '../../../extension.js';
import { toolBadge } from '../connection/connection-tools.page.js';

const PAGE_SIZE = 50;

/** Number of rows up to which the form needs no second button at its top. */
const SHORT = 8;

export function ticksAfter(form: URLSearchParams, tools: ListedTool[]): Set<string> {
  const names = (list: ListedTool[]) => new Set(list.map(({ name }) => name));
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

export interface OfferedTools {
  token: Html;
  address: string;
  ticked: ReadonlySet<string>;
  q: string;
  /** Number of the page, from 1. */
  page: number;
  /** True for a connection that was just added; false if the choice of an existing one is changed. */
  isAdding: boolean;
}

export function offeredToolsForm(
  tools: ListedTool[],
  { token, address, ticked, q, page: requestedPage, isAdding }: OfferedTools,
): Html {
  const words = q.toLowerCase();
  const isFound = ({ name, title, description }: ListedTool) =>
    [name, title, description].some((text) => typeof text === 'string' && text.toLowerCase().includes(words));
  const matching = tools.filter(isFound);
  const pages = Math.max(1, Math.ceil(matching.length / PAGE_SIZE));
  const page = Math.min(pages, Math.max(1, Math.floor(requestedPage) || 1));
  const pageTools = matching.slice((page - 1) * PAGE_SIZE, page * PAGE_SIZE);
  const isShown = new Set(pageTools);
  const hidden = tools
    .filter((tool) => ticked.has(tool.name) && !isShown.has(tool))
    .map(({ name }) => html`<input type="hidden" name="tool" value="${name}">`);
  const press = (value: string, label: string) => button(label, { name: 'ticks', value });
  const pageButton = (other: number, label: string) =>
    other >= 1 && other <= pages && button(label, { look: 'small', name: 'page', value: `${other}` });
  const save = html`<button type="submit" class="primary" formaction="${address}/save">${isAdding ? 'Go on: who may call it' : 'Save the choice'}</button>`;
  return html`<form method="post" class="card" action="${address}">${token}${hidden}${!isAdding && html`<input type="hidden" name="from" value="settings">`}
<div class="line"><label class="hidden" for="find">Find a tool</label><input id="find" type="search" name="q" placeholder="Find a tool" value="${q}" maxlength="255">${press('find', 'Find')}</div>
${actions(press('all', 'Tick all'), press('reads', 'Tick what reads only'), press('none', 'Tick none'), pageTools.length > SHORT && save)}
<fieldset><legend>Tools (${ticked.size} of ${tools.length} ticked)</legend>
${matching.length === 0 && html`<p>No tool has these words.</p>`}
<ul class="list">${pageTools.map(
    (
      tool,
    ) => html`<li><div><label class="choice"><input type="checkbox" name="tool" value="${tool.name}"${ticked.has(tool.name) && html` checked`}> <span><code>${tool.name}</code>
<small class="clamped">${typeof tool.description === 'string' && shortened(tool.description)}</small></span></label></div>${toolBadge(tool)}</li>`,
  )}</ul></fieldset>
${pages > 1 && html`<div class="pages"><span>Page ${page} of ${pages}</span>${actions(pageButton(page - 1, 'Previous'), pageButton(page + 1, 'Next'))}</div>`}
${actions(save)}</form>`;
}
