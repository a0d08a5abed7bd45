import { html, timeOf, type Framed, type Html } from '../../extension.js';
import type { ChangeDto, ChangeListDto } from './change.dto.js';

/** Filters of the page, as they were sent. */
export type ChangeFilters = Partial<Record<'since' | 'actor' | 'credential' | 'target', string>>;

/** The page of `/ui/m/changes/{accountId}`. @param fault why the filters are rejected; null if they are not */
export function changesPage(
  account: string,
  filters: ChangeFilters,
  { changes, nextCursor }: ChangeListDto,
  fault: string | null,
): Framed {
  const query = new URLSearchParams(filters).toString();
  return {
    title: 'Changes',
    asRequest: `/accounts/${account}/changes${query && `?${query}`}`,
    body: html`<p>Keys, members, grants, servers and connections: who changed what in the last 90 days, the newest first.</p>
<form method="get" role="search">${fault !== null && html`<p class="fault" role="alert">${fault}.</p>`}
${filterField('since', 'Since', 'A date, such as 2026-11-29', filters)}
${filterField('actor', 'Account', 'The name of the account that made the change', filters)}
${filterField('target', 'Target', 'A name, such as acme/weather', filters)}
${filterField('credential', 'Credential', 'The id of an API key', filters)}
<p><button type="submit">Find</button></p></form>
${changes.length === 0 ? html`<p>No changes.</p>` : html`<ul class="entries">${changes.map(entryOf)}</ul>`}
${nextCursor !== null && html`<p><a href="?${new URLSearchParams({ ...filters, cursor: nextCursor }).toString()}" rel="next">Older changes</a></p>`}`,
  };
}

function filterField(name: keyof ChangeFilters, label: string, hint: string, filters: ChangeFilters): Html {
  return html`<p><label for="${name}">${label}</label><span id="${name}-hint" class="hint">${hint}</span>
<input id="${name}" name="${name}" value="${filters[name]}" aria-describedby="${name}-hint" autocapitalize="none" spellcheck="false"></p>`;
}

function entryOf({ createdAt, action, target, actor, credentialId, before, after }: ChangeDto): Html {
  const [kind, verb] = action.split('.');
  const members = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  const by = actor === null ? 'Slipway' : (actor.name ?? 'a deleted account');
  return html`<li><strong>${target.name}</strong>: ${kind} ${verb} by ${by}, ${timeOf(createdAt)}
${
  (members.length > 0 || credentialId !== null) &&
  html`<details><summary>Details</summary><ul>${members.map(
    (member) =>
      html`<li>${member}: ${before && html`<code>${JSON.stringify(before[member])}</code>`}${before && after && ' → '}${after && html`<code>${JSON.stringify(after[member])}</code>`}</li>`,
  )}${credentialId !== null && html`<li>Credential: <code>${credentialId}</code></li>`}</ul></details>`
}</li>`;
}
