import { buttonLink, empty, html, pager, search, who, type Framed, type Html } from '../../extension.js';
import { actionsOf, factsOf, stateOf, type ServerView } from './addresses.page.js';

export function cataloguePage({
  q,
  views,
  pagination,
  token,
  isAuthor,
  parts,
}: {
  q: string;
  views: ServerView[];
  pagination: { currentPage: number; totalPages: number; totalCount: number };
  token: Html;
  isAuthor: boolean;
  parts?: Html[];
}): Framed {
  const { currentPage, totalCount } = pagination;
  const query = (page: number) => new URLSearchParams({ ...(q !== '' && { q }), page: String(page) }).toString();
  const emptyNote =
    q === ''
      ? `Nobody has published a server that you can find. ${isAuthor ? 'Publish the first one.' : 'Connect to one by its address, or ask the operator to publish one.'}`
      : 'Nothing fits these words. Try fewer or other words, or look at all servers.';
  return {
    title: 'Catalogue',
    asRequest: `/servers?${query(currentPage)}`,
    head: {
      lead: 'A server is published here for many people; a connection is your own use of one, with your login and your choice of tools.',
      actions: buttonLink('add', 'Add a server'),
    },
    body: html`<section class="card">${search('Find by name, words or tool', q)}
<p class="soft">${totalCount > 0 && html`${totalCount} ${totalCount === 1 ? 'server' : 'servers'}.`} ${q !== '' && html`<a href="catalogue">All servers</a>`}</p></section>
${totalCount === 0 && html`<section class="card">${empty('No servers', emptyNote, q !== '' ? null : isAuthor ? buttonLink('publish', 'Publish', { look: 'primary' }) : buttonLink('add', 'Add a server', { look: 'primary' }))}</section>`}
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
${pager('the catalogue', pagination, (page) => `catalogue?${query(page)}`)}
${parts}`,
  };
}
