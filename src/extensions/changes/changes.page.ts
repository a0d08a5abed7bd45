import {
  button,
  card,
  details,
  empty,
  fieldAs,
  html,
  list,
  notice,
  timeOf,
  type Framed,
  type Html,
} from '../../extension.js';
import type { ChangeDto, ChangeListDto } from './change.dto.js';

export type ChangeFilters = Partial<Record<'since' | 'actor' | 'credential' | 'target', string>>;

const FIELDS = [
  { name: 'since', label: 'Since', hint: 'A date, such as 2026-11-29' },
  { name: 'actor', label: 'Account', hint: 'The name of the account that made the change' },
  { name: 'target', label: 'Target', hint: 'A name, such as acme/weather' },
  { name: 'credential', label: 'Credential', hint: 'The id of an API key' },
] as const;

/** @param fault why the filters are rejected; null if they are valid */
export function changesPage(
  account: string,
  filters: ChangeFilters,
  { changes, nextCursor }: ChangeListDto,
  fault: string | null,
): Framed {
  const query = new URLSearchParams(filters).toString();
  const field = ({ name, label, hint }: (typeof FIELDS)[number]) => {
    const error = fault?.startsWith(`${name} `) && `${label}${fault.slice(name.length)}.`;
    const attributes = html`autocapitalize="none" spellcheck="false"`;
    return fieldAs({
      id: name,
      name,
      label,
      hint,
      content: filters[name],
      attributes,
      ...(error && { error, hasFocus: true }),
    });
  };
  const isOfField = FIELDS.some(({ name }) => fault?.startsWith(`${name} `));
  return {
    title: 'Changes',
    asRequest: `/accounts/${account}/changes${query && `?${query}`}`,
    crumbs: [['Account', 'me'], ['Changes']],
    head: {
      lead: 'Keys, members, grants, servers and connections: who changed what in the last 90 days, the newest first.',
    },
    body: html`${fault !== null && !isOfField && notice(`${fault}.`, 'bad')}
<form class="filters card" method="get" role="search">${FIELDS.map(field)}${button('Find', { look: 'primary' })}</form>
${card(
  'changes',
  'Changes',
  html`${changes.length === 0 ? empty('No changes', 'Nothing was changed in this time.') : list(changes.map((change) => [entryOf(change)]))}
${nextCursor !== null && html`<p><a href="?${new URLSearchParams({ ...filters, cursor: nextCursor }).toString()}" rel="next">Older changes</a></p>`}`,
)}`,
  };
}

function entryOf({ createdAt, action, target, actor, credentialId, before, after }: ChangeDto): Html {
  const [kind, verb] = action.split('.');
  const members = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  return html`<strong>${target.name}</strong>: ${kind} ${verb}${actor && ` by ${actor.name ?? 'a deleted account'}`}, ${timeOf(createdAt)}
${
  (members.length > 0 || credentialId !== null) &&
  details(
    'Details',
    html`<ul>${members.map(
      (member) =>
        html`<li>${member}: ${before && html`<code>${JSON.stringify(before[member])}</code>`}${before && after && ' → '}${after && html`<code>${JSON.stringify(after[member])}</code>`}</li>`,
    )}${credentialId !== null && html`<li>Credential: <code>${credentialId}</code></li>`}</ul>`,
  )
}`;
}
