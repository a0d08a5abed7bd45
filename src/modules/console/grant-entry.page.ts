/** An entry of a list of grants. */
import { formOf, type FormsView } from '../../platform/pages/forms.js';
import { html, type Html } from '../../platform/pages/html.js';
import { timeOf } from '../../platform/pages/times.js';

/** A grant as its giver sees it. */
export interface ListedGrant {
  id: string;
  account?: { name: string };
  level: 'call' | 'manage';
  tools?: { allow: string[] };
  expiresAt?: string;
  createdAt: string;
  grantedBy: string | null;
  lastUse?: { at: string; client: string | null; kind: string };
}

/** The row of a grant, with a button that revokes it if `canEnd` is true. */
export function grantEntry(
  view: FormsView,
  grant: ListedGrant,
  { kind, name }: { kind: string; name: string },
  canEnd = true,
): Html {
  const { id, level, expiresAt, tools, grantedBy, createdAt, account, lastUse } = grant;
  const grantee = account?.name ?? 'Everybody with an account';
  const used =
    lastUse &&
    html`, last used ${timeOf(lastUse.at)} with ${lastUse.client ?? (lastUse.kind === 'session' ? 'a browser' : 'a program')}`;
  return html`<li><strong>${grantee}</strong> may ${level} the ${kind} <strong>${name}</strong>: granted${grantedBy !== null && ` by ${grantedBy}`} on
${timeOf(createdAt)}, ${expiresAt === undefined ? 'without an end' : html`until ${timeOf(expiresAt)}`}, ${tools ? `tools ${tools.allow.join(', ')}` : 'all tools'}${used}
${canEnd && formOf(view, 'end', [], html`<button type="submit" class="plain" aria-label="End the access of ${grantee} to ${name}">End</button>`, { id })}</li>`;
}
