/**
 * All information is in the text: colours and icons only repeat it. A value of type {@link HtmlValue} is escaped unless
 * `html` made it.
 */
import { html, Html, type HtmlValue } from './html.js';
import { frameFiles } from './page-files.js';

/** A state, which chooses the colour and the icon of a badge, notice or stage. */
export type State = 'ok' | 'bad' | 'wait' | 'busy' | 'off' | 'mock' | 'held';

/** Paths of icons, on a grid of 16. */
const ICONS = {
  home: 'M2.5 7 8 2.5 13.5 7v6.5h-4v-4h-3v4h-4z',
  catalogue: 'M2.5 2.5h4.5v4.5H2.5zM9 2.5h4.5v4.5H9zM2.5 9h4.5v4.5H2.5zM9 9h4.5v4.5H9z',
  servers: 'M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.01M5 11h.01',
  calls: 'M2 8h3l2-5 2.5 10 2-5H14',
  people:
    'M6 7.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM1.5 13.5c0-2.5 2-4 4.5-4s4.5 1.5 4.5 4M11 3a2.3 2.3 0 0 1 0 4.3M12 9.7c1.6.5 2.5 1.9 2.5 3.8',
  account: 'M8 8a2.75 2.75 0 1 0 0-5.5A2.75 2.75 0 0 0 8 8zM2.75 14c0-2.8 2.2-4 5.25-4s5.25 1.2 5.25 4',
  module: 'M8 2 13.5 5v6L8 14 2.5 11V5zM2.5 5 8 8l5.5-3M8 8v6',
  add: 'M8 3v10M3 8h10',
  down: 'm4 6 4 4 4-4',
  search: 'M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM10.7 10.7 14 14',
} as const;

export type IconName = keyof typeof ICONS;

/** Renders an icon, which screen readers skip. */
export function icon(name: IconName): Html {
  return html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="${ICONS[name]}"/></svg>`;
}

export const mark = new Html(frameFiles['mark.svg'].text.trim().replace('<svg', '<svg aria-hidden="true"'));

/** Renders the picture of a target or an account: its icon, or else two letters on a colour of its name. */
export function tile(name: string, { iconUrl, look = '' }: { iconUrl?: string | null; look?: string } = {}): Html {
  const words = name.match(/[\p{L}\p{N}]+/gu) ?? ['?'];
  const letters = words.slice(0, 2).map((word) => [...word][0].toUpperCase());
  const hue = [...name].reduce((sum, char) => (sum * 31 + (char.codePointAt(0) ?? 0)) % 6, 0);
  return html`<span class="tile h${hue + 1} ${look}" aria-hidden="true">${iconUrl ? html`<img src="${iconUrl}" alt="">` : letters}</span>`;
}

/** Renders a name with its picture, and a small line under it. @param href address of its page */
export function who(
  name: string,
  small: HtmlValue,
  { href, ...look }: { href?: string; iconUrl?: string | null; look?: string } = {},
): Html {
  return html`<div class="who">${tile(name, look)}<div>${href === undefined ? html`<b>${name}</b>` : html`<a href="${href}">${name}</a>`}<small>${small}</small></div></div>`;
}

/** Renders a state or a number in a word or two. @param state absent for a neutral one */
export function badge(text: HtmlValue, state?: State): Html {
  return html`<span class="badge${state && ` ${state}`}">${text}</span>`;
}

/** Renders buttons and links side by side. */
export function actions(...content: HtmlValue[]): Html {
  return html`<div class="actions">${content}</div>`;
}

/** Words among `primary`, `danger`, `ghost` and `small`. A page has at most one `primary` button in a form. */
interface ButtonLook {
  look?: string;
  /** The name for screen readers, where the label needs more. */
  about?: string;
}

/** Renders a button that sends its form. @param choice the name and value that it sends */
export function button(
  label: HtmlValue,
  { look = '', about, ...choice }: ButtonLook & { name?: string; value?: string } = {},
) {
  const sent = Object.entries(choice).map(([name, value]) => html` ${name}="${value}"`);
  return html`<button type="submit" class="${look}"${sent}${about !== undefined && html` aria-label="${about}"`}>${label}</button>`;
}

export function buttonLink(href: string, label: HtmlValue, { look = '', about }: ButtonLook = {}): Html {
  return html`<a class="button ${look}" href="${href}"${about !== undefined && html` aria-label="${about}"`}>${label}</a>`;
}

/** The picture, state, buttons and introduction next to the heading of a page. */
export interface Head {
  tile?: Html;
  badge?: HtmlValue;
  actions?: HtmlValue;
  /** A message on the page. */
  lead?: HtmlValue;
}

export function head(title: string, { tile: picture, badge: state, actions: ways, lead }: Head = {}): Html {
  return html`<div class="head">${picture}<h1>${title}</h1>${state}${ways && actions(ways)}${lead && html`<p>${lead}</p>`}</div>`;
}

/** Labels with their paths from the root, which some pages lack. */
export type Crumbs = readonly (readonly [label: string, path?: string])[];

/** @param root the relative path to the root of the service */
export function breadcrumb(root: string, crumbs: Crumbs): Html {
  return html`<nav aria-label="Breadcrumb"><ol class="crumbs">${crumbs.map(
    ([label, path]) => html`<li>${path === undefined ? label : html`<a href="${root}${path}">${label}</a>`}</li>`,
  )}</ol></nav>`;
}

/** Renders views of one resource, as links. @param current the address among them that is shown */
export function tabs(
  label: string,
  links: readonly (readonly [href: string, label: string])[],
  current: string | null,
) {
  return html`<nav class="tabs" aria-label="${label}"><ul>${links.map(
    ([href, name]) => html`<li><a href="${href}"${href === current && html` aria-current="page"`}>${name}</a></li>`,
  )}</ul></nav>`;
}

/** Renders a part of a page. @param id of its heading @param end a link or badge at the end of the heading's line */
export function card(
  id: string,
  title: HtmlValue,
  body: HtmlValue,
  { count, end }: { count?: HtmlValue; end?: HtmlValue } = {},
): Html {
  return html`<section class="card" aria-labelledby="${id}"><div class="line"><h2 id="${id}">${title}</h2>${count !== undefined && badge(count)}${end && html`<span class="end">${end}</span>`}</div>
${body}</section>
`;
}

/** Renders two columns where there is space. @param isEven of one width */
export function columns(main: HtmlValue, side: HtmlValue, isEven = false): Html {
  return html`<div class="columns${isEven && ' even'}"><div>${main}</div><div>${side}</div></div>`;
}

/** Renders the rows of a card: the item, then its badge and its buttons. */
export function list(rows: readonly (readonly [main: HtmlValue, ...end: HtmlValue[]])[], id?: string): Html {
  return html`<ul class="list"${id && html` id="${id}"`}>${rows.map(([main, ...end]) => html`<li><div>${main}</div>${end}</li>\n`)}</ul>`;
}

/** A column of a table: `extra` ones are hidden on narrow screens, `state` and `actions` need no label in a card. */
export type Column = readonly [label: string, kind?: 'num' | 'extra' | 'state' | 'actions'];

/** Renders a table whose rows become cards on narrow screens. */
export function table(caption: string, headings: readonly Column[], rows: readonly (readonly HtmlValue[])[]): Html {
  const classOf = (kind: Column[1]) => (kind === 'num' || kind === 'extra') && html` class="${kind}"`;
  const cell = (value: HtmlValue, at: number) => {
    const [label, kind] = headings[at];
    const isNamed = at > 0 && kind !== 'state' && kind !== 'actions';
    const content = kind === 'actions' && value ? actions(value) : value;
    return html`<td role="cell"${classOf(kind)}${isNamed && html` data-label="${label}"`}>${content}</td>`;
  };
  return html`<table class="rows" role="table"><caption class="hidden">${caption}</caption>
<thead role="rowgroup"><tr role="row">${headings.map(
    ([label, kind]) =>
      html`<th role="columnheader" scope="col"${classOf(kind)}>${kind === 'actions' ? html`<span class="hidden">${label}</span>` : label}</th>`,
  )}</tr></thead>
<tbody role="rowgroup">${rows.map((row) => html`<tr role="row">${row.map(cell)}</tr>\n`)}</tbody></table>`;
}

/** Renders names with their values. A false row is left out. */
export function facts(
  rows: readonly (readonly [name: HtmlValue, value: HtmlValue] | false | null | undefined)[],
): Html {
  return html`<dl class="facts">${rows.map((row) => row && html`<dt>${row[0]}</dt><dd>${row[1]}</dd>\n`)}</dl>`;
}

/** Renders a string to copy. @param id of the element with the text */
export function snippet(id: string, caption: string, text: HtmlValue): Html {
  return html`<figure class="snippet"><figcaption>${caption}<button class="small ghost" type="button" data-copy="${id}" hidden>Copy</button></figcaption>
<pre id="${id}" tabindex="0" aria-label="${caption}">${text}</pre></figure>`;
}

/** Renders an empty list: the reason, and the next step. @param next a link or button */
export function empty(title: string, text: HtmlValue, next?: HtmlValue): Html {
  return html`<div class="empty"><h3>${title}</h3><p>${text}</p>${next}</div>`;
}

/** Renders a message: a success, as a status; otherwise an error, as an alert. */
export function notice(text: HtmlValue, state: State = 'ok', id?: string): Html {
  return html`<div class="notice ${state}"${id && html` id="${id}"`} role="${state === 'ok' ? 'status' : 'alert'}"><div>${text}</div></div>`;
}

/** Renders the steps of a task. @param current from 0 */
export function steps(labels: readonly string[], current: number): Html {
  return html`<ol class="steps">${labels.map(
    (label, at) =>
      html`<li${at < current && html` class="ok"`}${at === current && html` aria-current="step"`}>${label}</li>`,
  )}</ol>`;
}

/** Renders stages in chronological order, each with its state. */
export function timeline(stages: readonly (readonly [state: State, name: HtmlValue, detail: HtmlValue])[]): Html {
  return html`<ol class="timeline">${stages.map(
    ([state, name, detail]) =>
      html`<li class="${state}"><b>${name}</b>${detail && html`<p class="soft">${detail}</p>`}</li>\n`,
  )}</ol>`;
}

/** Renders a part that opens on demand. */
export function details(summary: HtmlValue, body: HtmlValue, isOpen: boolean | undefined = false): Html {
  return html`<details${isOpen && html` open`}><summary class="soft">${summary}</summary>
${body}</details>`;
}

/** Renders a small form that opens at its button, such as one that confirms. */
export function popup(label: HtmlValue, body: Html, isOpen: boolean | undefined = false): Html {
  return html`<details class="pop"${isOpen && html` open`}><summary>${label}</summary><div>${body}</div></details>`;
}

/** Renders links to the pages of a list; none for one page. @param label name of the listed items */
export function pager(
  label: string,
  { currentPage: page, totalPages: last }: { currentPage: number; totalPages: number },
  hrefOf: (page: number) => string,
): Html | null {
  const link = (to: number, name: string, rel: string) =>
    to >= 1 && to <= last && html`<a class="button small" href="${hrefOf(to)}" rel="${rel}">${name}</a>`;
  if (last <= 1) return null;
  return html`<nav class="pages" aria-label="Pages of ${label}"><span>Page ${page} of ${last}</span>${actions(link(page - 1, 'Previous', 'prev'), link(page + 1, 'Next', 'next'))}</nav>`;
}

/** Renders a search in a list, as a GET form. @param list the id of a list that is filtered while typing */
export function search(
  label: string,
  q: string,
  { action, list: filtered }: { action?: string; list?: string } = {},
): Html {
  return html`<form class="line" method="get" role="search" aria-label="${label}"${action !== undefined && html` action="${action}"`}><label class="hidden" for="find">${label}</label>
<input id="find" name="q" type="search" maxlength="255" placeholder="${label}" value="${q}"${filtered !== undefined && html` data-filter="${filtered}"`}>
<button type="submit">Find</button></form>`;
}
