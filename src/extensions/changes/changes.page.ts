import { html, timeOf, type Framed, type Html } from '../../extension.js';
import type { ChangeDto, ChangeListDto } from './change.dto.js';

/** Filters of the page, as they were sent. */
export type ChangeFilters = Partial<Record<'since' | 'actor' | 'credential' | 'target', string>>;

const FIELDS = [
  { name: 'since', label: 'Since', hint: 'A date, such as 2026-11-29' },
  { name: 'actor', label: 'Account', hint: 'The name of the account that made the change' },
  { name: 'target', label: 'Target', hint: 'A name, such as acme/weather' },
  { name: 'credential', label: 'Credential', hint: 'The id of an API key' },
] as const;

/** The page of `/ui/m/changes/{accountId}`. @param fault why the filters are rejected; null if they are not */
export function changesPage(
  account: string,
  filters: ChangeFilters,
  { changes, nextCursor }: ChangeListDto,
  fault: string | null,
): Framed {
  const query = new URLSearchParams(filters).toString();
  const field = ({ name, label, hint }: (typeof FIELDS)[number]) => {
    const isFaulty = fault?.startsWith(`${name} `);
    return html`<p><label for="${name}">${label}</label><span id="${name}-hint" class="hint">${hint}</span>
${isFaulty && html`<span id="${name}-fault" class="fault" role="alert">${label}${fault?.slice(name.length)}.</span>`}
<input id="${name}" name="${name}" value="${filters[name]}" aria-describedby="${name}-hint${isFaulty && ` ${name}-fault`}"${isFaulty && html` aria-invalid="true" autofocus`} autocapitalize="none" spellcheck="false"></p>`;
  };
  const isOfField = FIELDS.some(({ name }) => fault?.startsWith(`${name} `));
  return {
    title: 'Changes',
    asRequest: `/accounts/${account}/changes${query && `?${query}`}`,
    body: html`<p>Keys, members, grants, servers and connections: who changed what in the last 90 days, the newest first.</p>
<form method="get" role="search">${fault !== null && !isOfField && html`<p class="fault" role="alert">${fault}.</p>`}
${FIELDS.map(field)}
<p><button type="submit">Find</button></p></form>
${changes.length === 0 ? html`<p>No changes.</p>` : html`<ul class="entries">${changes.map(entryOf)}</ul>`}
${nextCursor !== null && html`<p><a href="?${new URLSearchParams({ ...filters, cursor: nextCursor }).toString()}" rel="next">Older changes</a></p>`}`,
  };
}

function entryOf({ createdAt, action, target, actor, credentialId, before, after }: ChangeDto): Html {
  const [kind, verb] = action.split('.');
  const members = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  return html`<li><strong>${target.name}</strong>: ${kind} ${verb}${actor && ` by ${actor.name ?? 'a deleted account'}`}, ${timeOf(createdAt)}
${
  (members.length > 0 || credentialId !== null) &&
  html`<details><summary>Details</summary><ul>${members.map(
    (member) =>
      html`<li>${member}: ${before && html`<code>${JSON.stringify(before[member])}</code>`}${before && after && ' → '}${after && html`<code>${JSON.stringify(after[member])}</code>`}</li>`,
  )}${credentialId !== null && html`<li>Credential: <code>${credentialId}</code></li>`}</ul></details>`
}</li>`;
}
