import type { Framed } from '../../platform/pages/frame.js';
import { html, type Html } from '../../platform/pages/html.js';
import { actionsOf, factsOf, type ServerView } from './addresses.page.js';

/** The page of `/ui/catalogue`: a card for each server. */
export function cataloguePage({
  q,
  views,
  pagination: { currentPage, totalPages, totalCount },
  token,
}: {
  q: string;
  views: ServerView[];
  pagination: { currentPage: number; totalPages: number; totalCount: number };
  token: Html;
}): Framed {
  const query = (page: number) => new URLSearchParams({ ...(q !== '' && { q }), page: String(page) }).toString();
  const emptyNote =
    q === ''
      ? 'There are no servers yet that you may find. Ask a colleague for the address of one, or the operator to publish one.'
      : 'Nothing fits these words. Try fewer or other words, or look at all servers.';
  return {
    title: 'Catalogue',
    asRequest: `/servers?${query(currentPage)}`,
    body: html`<form method="get" role="search"><p><label for="q">Find by name, words or tool</label>
<input id="q" name="q" type="search" maxlength="500" value="${q}"></p><p><button type="submit">Find</button></p></form>
<p>${totalCount === 0 ? emptyNote : html`${totalCount} ${totalCount === 1 ? 'server' : 'servers'}.`}
${q !== '' && html`<a href="catalogue">All servers</a>`}</p>
${views.map((view) => {
  const address = `s/${encodeURIComponent(view.slug)}`;
  return html`<section aria-labelledby="${view.slug}"><h2 id="${view.slug}"><a href="${address}">${view.server.displayName}</a></h2>
${factsOf(view)}
${view.mayCall && view.server.remote && html`<p><a href="${address}#connect">Connect</a></p>`}
${actionsOf(view, { token, address })}</section>`;
})}
<p>${currentPage > 1 && html`<a href="catalogue?${query(currentPage - 1)}" rel="prev">Previous page</a> `}
${totalPages > 1 && html`Page ${currentPage} of ${totalPages}`}
${currentPage < totalPages && html` <a href="catalogue?${query(currentPage + 1)}" rel="next">Next page</a>`}</p>`,
  };
}
