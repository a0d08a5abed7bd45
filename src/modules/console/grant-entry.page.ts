import { actions, button, buttonLink, table, who } from '../../platform/pages/components.js';
import { formOf, type FormsView } from '../../platform/pages/forms.js';
import { html, type Html, type HtmlValue } from '../../platform/pages/html.js';
import { timeOf } from '../../platform/pages/times.js';

/** A grant as its owner sees it. */
export interface ListedGrant {
  id: string;
  account?: { name: string };
  level: 'call' | 'manage';
  tools?: { allow: string[] };
  expiresAt?: string;
  createdAt: string;
  grantedBy: string | null;
  lastUse?: LastUse;
}

interface LastUse {
  at: string;
  client: string | null;
  kind: string;
}

interface OpenRequest {
  id: string;
  qualifiedName: string;
  account: { name: string };
  text: string;
  createdAt: string;
}

interface GrantRow {
  grant: ListedGrant;
  kind: string;
  name: string;
  canEnd: boolean;
}

/** Renders the grants; each has a button that revokes it if `canEnd` is true. */
export function grantTable(view: FormsView, rows: readonly GrantRow[]): Html {
  const headings = [['Account'], ['Can'], ['Until'], ['Last used', 'extra'], ['Actions', 'actions']] as const;
  const cells = rows.map(({ grant, kind, name, canEnd }) => {
    const { id, level, expiresAt, tools, grantedBy, createdAt, account, lastUse } = grant;
    const grantee = account?.name ?? 'Everybody with an account';
    const about = `Revoke the access of ${grantee} to ${name}`;
    return [
      who(grantee, html`granted${grantedBy !== null && ` by ${grantedBy}`}, ${timeOf(createdAt)}`, { look: 'round' }),
      html`may ${level} the ${kind} <strong>${name}</strong><small>${tools ? `tools ${tools.allow.join(', ')}` : 'all tools'}</small>`,
      expiresAt === undefined ? 'No end' : timeOf(expiresAt),
      lastUseOf(lastUse),
      canEnd && formOf(view, 'end', [], button('End', { look: 'small ghost danger', about }), { id }),
    ];
  });
  return table('Grants', headings, cells);
}

export function lastUseOf(use: LastUse | undefined): HtmlValue {
  const by = use?.client ?? (use?.kind === 'session' ? 'a browser' : 'a program');
  return use ? html`${timeOf(use.at)}<small>with ${by}</small>` : 'Not yet';
}

/** Renders an open request for access, with a link to the form that decides it. */
export function requestRow(ui: string, request: OpenRequest): [Html, Html] {
  const { id, qualifiedName, account } = request;
  const href = `${ui}/access/server/${encodeURIComponent(qualifiedName)}?request=${id}#request`;
  const answer = buttonLink(href, 'Answer', { look: 'small', about: `Answer ${account.name}: ${qualifiedName}` });
  return [who(account.name, requestText(request), { look: 'round' }), actions(answer)];
}

/** Names the server of a request, its time and its reason. */
export function requestText({ qualifiedName, text, createdAt }: OpenRequest): Html {
  return html`asks for access to <code>${qualifiedName}</code>, ${timeOf(createdAt)}: “${text}”`;
}
