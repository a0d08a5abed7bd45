/** The table of grants. */
import { button, table, who } from '../../platform/pages/components.js';
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

/** A grant on a target. */
interface GrantRow {
  grant: ListedGrant;
  kind: string;
  name: string;
  canEnd: boolean;
}

/** The grants, each with a button that revokes it if `canEnd` is true. */
export function grantTable(view: FormsView, rows: readonly GrantRow[]): Html {
  const headings = [['Account'], ['Can'], ['Until'], ['Last used', 'extra'], ['Actions', 'actions']] as const;
  const cells = rows.map(({ grant, kind, name, canEnd }) => {
    const { id, level, expiresAt, tools, grantedBy, createdAt, account, lastUse } = grant;
    const grantee = account?.name ?? 'Everybody with an account';
    const about = `Revoke the access of ${grantee} to ${name}`;
    return [
      who(grantee, html`granted${grantedBy !== null && ` by ${grantedBy}`} on ${timeOf(createdAt)}`, { look: 'round' }),
      html`may ${level} the ${kind} <strong>${name}</strong><small>${tools ? `tools ${tools.allow.join(', ')}` : 'all tools'}</small>`,
      expiresAt === undefined ? 'No end' : timeOf(expiresAt),
      lastUse
        ? html`${timeOf(lastUse.at)}<small>with ${lastUse.client ?? (lastUse.kind === 'session' ? 'a browser' : 'a program')}</small>`
        : 'Not yet',
      canEnd && formOf(view, 'end', [], button('End', { look: 'small ghost danger', about }), { id }),
    ];
  });
  return table('Grants', headings, cells);
}
