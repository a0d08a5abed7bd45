/** Parts of pages that have several forms at one address, and of lists of grants. */
import { html, type Html } from '../../platform/pages/html.js';
import { timeOf } from '../../platform/pages/times.js';

/** A refused form, with the reason. */
export interface Fault {
  /** The form, and the row that it is about. */
  do: string;
  of: string;
  text: string;
  /** The values that were sent. */
  form: URLSearchParams;
}

/** The part of a page's content that its forms need. */
export interface FormsView {
  token: Html;
  fault?: Fault;
}

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

/** The refusal of a form. */
export function faultOf(form: URLSearchParams, { message }: Error): Fault {
  return { do: form.get('do') ?? '', of: form.get('id') ?? '', text: message.replace(/\.$/, ''), form };
}

/** The hidden fields of a form, and the sentence of its refusal. */
export function start({ token, fault }: FormsView, action: string, of = ''): Html {
  return html`${token}<input type="hidden" name="do" value="${action}">${of !== '' && html`<input type="hidden" name="id" value="${of}">`}
${fault?.do === action && fault.of === of && html`<span class="fault" role="alert">${fault.text}.</span>`}`;
}

/** The value that was typed into a field of a refused form. */
export function readTyped({ fault }: FormsView, action: string, of: string, field: string): string {
  return fault?.do === action && fault.of === of ? (fault.form.get(field) ?? '') : '';
}

/** A grant of a thing as a sentence. @param canEnd the page can end it */
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
${canEnd && html`<form method="post">${start(view, 'end', id)}<button type="submit" class="plain" aria-label="End the access of ${grantee} to ${name}">End</button></form>`}</li>`;
}
