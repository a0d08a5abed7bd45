import { buttonLink, empty, pager, search, who } from '../../platform/pages/components.js';
import type { Framed } from '../../platform/pages/frame.js';
import { html, type Html } from '../../platform/pages/html.js';
import { actionsOf, factsOf, stateOf, type ServerView } from './addresses.page.js';

/** The page of `/ui/catalogue`: a card for each server. */
export function cataloguePage({
  q,
  views,
  pagination,
  token,
}: {
  q: string;
  views: ServerView[];
  pagination: { currentPage: number; totalPages: number; totalCount: number };
  token: Html;
}): Framed {
  const { currentPage, totalCount } = pagination;
  const query = (page: number) => new URLSearchParams({ ...(q !== '' && { q }), page: String(page) }).toString();
  const emptyNote =
    q === ''
      ? 'There are no servers yet that you may find. Ask a colleague for the address of one, or the operator to publish one.'
      : 'Nothing fits these words. Try fewer or other words, or look at all servers.';
  return {
    title: 'Catalogue',
    asRequest: `/servers?${query(currentPage)}`,
    head: {
      lead: 'Servers that you can use or request. “Set up for me” creates your own connection to one.',
      actions: buttonLink('add', 'Add a server'),
    },
    body: html`<section class="card">${search('Find by name, words or tool', q)}
<p class="soft">${totalCount > 0 && html`${totalCount} ${totalCount === 1 ? 'server' : 'servers'}.`} ${q !== '' && html`<a href="catalogue">All servers</a>`}</p></section>
${totalCount === 0 && html`<section class="card">${empty('No servers', emptyNote, q === '' ? buttonLink('add', 'Add a server') : null)}</section>`}
<div class="cards">${views.map((view) => {
      const { server, slug, mayCall } = view;
      const { displayName, tools, qualifiedName } = server;
      const address = `s/${encodeURIComponent(slug)}`;
      const [by = ''] = qualifiedName.split('/');
      const count = tools && html` · ${tools.length} ${tools.length === 1 ? 'tool' : 'tools'}`;
      return html`<section class="card" aria-labelledby="${slug}"><h2 class="hidden" id="${slug}">${displayName}</h2>
<div class="line">${who(displayName, html`by ${by}${count}`, { href: address })}<span class="end">${stateOf(view)}</span></div>
${factsOf(view)}
<div class="line tail">${mayCall && server.remote && buttonLink(`${address}#connect`, 'Connect', { look: 'small', about: `Connect: ${displayName}` })}${actionsOf(view, { token, address })}</div></section>`;
    })}</div>
${pager('the catalogue', pagination, (page) => `catalogue?${query(page)}`)}`,
  };
}
