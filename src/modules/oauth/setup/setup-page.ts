import { escaped, messagePage, page, type Page } from '../../../platform/pages/page.js';
import type {
  AuthorizeView,
  ClientRequest,
  FormView,
  PageServer,
  SetupField,
  SetupResult,
  SetupView,
} from './setup.types.js';
import type { PreregisteredClient } from '../credentials.types.js';

/** The names of the client's fields in the form. */
const clientFields = { issuer: 'client.issuer', id: 'client.id', secret: 'client.secret' } as const;

const ID_CHARS_MAX = 1_000;

const SECRET_CHARS_MAX = 4_000;

/** RFC 6749 appendix A.1 and A.2. */
const VISIBLE = /^[\x20-\x7e]*$/;

/** The submitted client; null to use the stored one further; or the error of the form. */
type SubmittedClient = { client: PreregisteredClient | null } | { fault: string };

/** Renders the setup page. */
export function setupPage(view: SetupView): Page {
  switch (view.kind) {
    case 'message':
      return messagePage(view.title, view.text);
    case 'authorized':
    case 'connected':
      return resultPage(view);
    case 'authorize':
      return authorizePage(view);
    case 'form':
      return formPage(view);
  }
}

function resultPage({ kind, label, upstreamHost }: SetupResult): Page {
  const [name, host] = [`<strong>${escaped(label)}</strong>`, `<code>${escaped(upstreamHost)}</code>`];
  const [title, text] =
    kind === 'authorized'
      ? ['Authorized', `Slipway may now use ${name} at ${host}.`]
      : ['Connected', `The connection ${name} to ${host} works.`];
  return page(
    title,
    `<p role="status">${text}</p>
<p>The app that led you here continues by itself. You can close this page.</p>`,
  );
}

/** The icon and the description of a server. */
function presentation({ iconUrl, description = '' }: PageServer): string {
  const icon = iconUrl === undefined ? '' : `<img src="${escaped(iconUrl)}" alt="">`;
  return icon + description === '' ? '' : `<p class="server">${icon}${escaped(description)}</p>`;
}

function authorizePage(view: AuthorizeView): Page {
  const { label, title = label, upstreamHost, issuerHost, signInHost, scopes, action } = view;
  const list = scopes.map((scope) => `<li><code>${escaped(scope)}</code></li>`).join('');
  const rows: [name: string, html: string][] = [
    ['MCP server', escaped(label)],
    ['The access is handed to', `<code>${escaped(upstreamHost)}</code>`],
    ['You sign in at', `<code>${escaped(signInHost)}</code>`],
    ...(issuerHost === signInHost
      ? []
      : [['in the name of', `<code>${escaped(issuerHost)}</code>`] as [string, string]]),
    ['It will be asked for', list === '' ? 'what is given by default' : `<ul>${list}</ul>`],
  ];
  return page(
    `Authorize ${title}`,
    `${presentation(view)}<p>Slipway asks for access to the MCP server <strong>${escaped(title)}</strong> in your name. You decide about it at
<strong>${escaped(signInHost)}</strong>, where the button leads; Slipway never sees your password.</p>
<dl>
${rows.map(([name, html]) => `<div><dt>${name}</dt><dd>${html}</dd></div>`).join('\n')}
</dl>
<form method="post"${action === undefined ? '' : ` action="${escaped(action)}"`}><button type="submit">Continue to ${escaped(signInHost)}</button></form>
<p class="soft">Whoever can use this server through Slipway then acts with the access you give. Go on only if you expected this
page; otherwise close it, and nothing happens.</p>`,
  );
}

function formPage(view: FormView): Page {
  const { label, title = label, upstreamHost, action, reason, fields, client, fault } = view;
  return page(
    `Set up ${title}`,
    `${presentation(view)}<p>The connection <strong>${escaped(label)}</strong> to <code>${escaped(upstreamHost)}</code> does not work yet.
${escaped(reason)}</p>
${fault === null ? '' : `<p role="alert" class="fault">${escaped(fault)}</p>`}
${client === null ? '' : `<dl><div><dt>Redirect URI of the client</dt><dd><code>${escaped(client.redirectUri)}</code></dd></div></dl>`}
<form method="post" action="${escaped(action)}" autocomplete="off">
${client === null ? '' : clientInputs(client)}
${fields.map(inputOf).join('\n')}
<button type="submit">${fields.length === 0 && client === null ? 'Try again' : 'Save and connect'}</button></form>
<p class="soft">Slipway stores these values encrypted, sends them to <code>${escaped(upstreamHost)}</code>${
      client === null ? '' : `, the client only to <code>${escaped(new URL(client.issuer).host)}</code>,`
    } and shows them to
nobody. Go on only if you expected this page; otherwise close it, and nothing happens.</p>`,
  );
}

/** The issuer is sent as well: a client is stored for the server that this page named, or not at all. */
function clientInputs({ issuer, state }: ClientRequest): string {
  const hint = state === 'given' ? 'A client is stored. Leave ID and secret empty to go on with it.' : '';
  const attributes = 'autocomplete="off" spellcheck="false"';
  return `<input type="hidden" name="${clientFields.issuer}" value="${escaped(issuer)}">
<p><label for="ci">Client ID</label>
<span id="cih" class="hint">${hint}</span>
<input id="ci" name="${clientFields.id}" aria-describedby="cih" type="text" ${attributes}></p>
<p><label for="cs">Client secret (optional)</label>
<span id="csh" class="hint">Leave it empty for a client without one.</span>
<input id="cs" name="${clientFields.secret}" aria-describedby="csh" type="password" ${attributes}></p>`;
}

function inputOf(field: SetupField, index: number): string {
  const { name, label, description, isRequired, isStored, fault } = field;
  const id = `f${index}`;
  const hints = [
    ...(description === undefined ? [] : [`<span class="hint">${escaped(description)}</span>`]),
    ...(isStored ? ['<span class="hint">A value is stored. Leave this empty to keep it.</span>'] : []),
  ];
  const faultText = fault === null ? '' : `<span class="fault" role="alert">${escaped(fault)}</span>`;
  const attributes =
    `id="${id}" name="${escaped(name)}" aria-describedby="${id}h"` +
    (isRequired && !isStored ? ' required' : '') +
    (fault === null ? '' : ' aria-invalid="true"');
  return `<p><label for="${id}">${escaped(label)}${isRequired ? '' : ' (optional)'}</label>
<span id="${id}h">${hints.join('')}${faultText}</span>
${controlOf(field, attributes)}</p>`;
}

function controlOf({ allowed, isSecret, isStored, control, limits, fallback = '' }: SetupField, base: string): string {
  const shown = isStored ? '' : fallback;
  if (allowed !== null) {
    const options = ['', ...allowed].map((value) => {
      const selected = value === shown ? ' selected' : '';
      return `<option value="${escaped(value)}"${selected}>${escaped(value)}</option>`;
    });
    return `<select ${base}>${options.join('')}</select>`;
  }
  const bounds = Object.entries(limits).map(([name, value]) => ` ${name}="${value}"`);
  const attributes = `${base}${bounds.join('')} autocomplete="off" spellcheck="false"`;
  if (isSecret) return `<input ${attributes} type="password">`;
  // The first line break of a text area is not part of its value.
  if (control === 'lines') return `<textarea ${attributes} rows="5">\n${escapedLines(shown)}</textarea>`;
  const value = shown === '' ? '' : ` value="${escaped(shown)}"`;
  if (control === 'line') return `<input ${attributes} type="text"${value}>`;
  return `<input ${attributes} type="number" step="${control === 'integer' ? 1 : 'any'}"${value}>`;
}

function escapedLines(text: string): string {
  return text.split(/\r?\n/).map(escaped).join('\n');
}

/** Reads the client of a form that has fields for one. */
export function readClient(form: URLSearchParams, { state }: ClientRequest): SubmittedClient {
  const text = (name: string) => form.get(name)?.trim() ?? '';
  const clientId = text(clientFields.id);
  const secret = text(clientFields.secret);
  if (hasOtherValues(form)) return { fault: 'Give a client or other values, not both at once.' };
  if (clientId === '' && secret !== '') return { fault: 'A client secret belongs to a client ID: give both.' };
  if (clientId === '') return state === 'given' ? { client: null } : { fault: 'Nothing was filled in.' };
  if (!VISIBLE.test(clientId + secret)) return { fault: 'A client ID and its secret are visible ASCII characters.' };
  if (clientId.length > ID_CHARS_MAX) return { fault: `A client ID must be at most ${ID_CHARS_MAX} characters.` };
  if (secret.length > SECRET_CHARS_MAX) {
    return { fault: `A client secret must be at most ${SECRET_CHARS_MAX} characters.` };
  }
  const issuer = text(clientFields.issuer);
  return { client: { issuer, clientId, clientSecret: secret === '' ? null : secret } };
}

/** True if a client was submitted, or if the form has fields for one and nothing was filled in. */
export function isForClient(form: URLSearchParams): boolean {
  const hasClient = [clientFields.id, clientFields.secret].some((name) => (form.get(name)?.trim() ?? '') !== '');
  return hasClient || (form.has(clientFields.id) && !hasOtherValues(form));
}

function hasOtherValues(form: URLSearchParams): boolean {
  return [...form].some(([name, value]) => !name.startsWith('client.') && value.trim() !== '');
}
