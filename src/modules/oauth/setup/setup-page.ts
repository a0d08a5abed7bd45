import { html, type Html } from '../../../platform/pages/html.js';
import { messagePage, page, type Page } from '../../../platform/pages/page.js';
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
  const name = html`<strong>${label}</strong>`;
  const host = html`<code>${upstreamHost}</code>`;
  const isAuthorized = kind === 'authorized';
  const text = isAuthorized
    ? html`Slipway may now use ${name} at ${host}.`
    : html`The connection ${name} to ${host} works.`;
  return page(
    isAuthorized ? 'Authorized' : 'Connected',
    html`<p role="status">${text}</p>
<p>The app that led you here continues by itself. You can close this page.</p>`,
  );
}

/** The icon and the description of a server. */
function presentation({ iconUrl, description = '' }: PageServer): Html | null {
  if (iconUrl === undefined && description === '') return null;
  return html`<p class="server">${iconUrl !== undefined && html`<img src="${iconUrl}" alt="">`}${description}</p>`;
}

function authorizePage(view: AuthorizeView): Page {
  const { label, title = label, upstreamHost, issuerHost, signInHost, scopes, action } = view;
  const list = scopes.map((scope) => html`<li><code>${scope}</code></li>`);
  const row = (name: string, value: Html) => html`<div><dt>${name}</dt><dd>${value}</dd></div>\n`;
  return page(
    `Authorize ${title}`,
    html`${presentation(view)}<p>Slipway asks for access to the MCP server <strong>${title}</strong> in your name. You decide about it at
<strong>${signInHost}</strong>, where the button leads; Slipway never sees your password.</p>
<dl>
${row('MCP server', html`${label}`)}
${row('The access is handed to', html`<code>${upstreamHost}</code>`)}
${row('You sign in at', html`<code>${signInHost}</code>`)}
${issuerHost !== signInHost && row('in the name of', html`<code>${issuerHost}</code>`)}
${row('It will be asked for', list.length === 0 ? html`what is given by default` : html`<ul>${list}</ul>`)}
</dl>
<form method="post"${action !== undefined && html` action="${action}"`}><button type="submit">Continue to ${signInHost}</button></form>
<p class="soft">Whoever can use this server through Slipway then acts with the access you give. Go on only if you expected this
page; otherwise close it, and nothing happens.</p>`,
  );
}

function formPage(view: FormView): Page {
  const { label, title = label, upstreamHost, action, reason, fields, client, fault } = view;
  const clientHost = client && new URL(client.issuer).host;
  return page(
    `Set up ${title}`,
    html`${presentation(view)}<p>The connection <strong>${label}</strong> to <code>${upstreamHost}</code> does not work yet.
${reason}</p>
${fault !== null && html`<p role="alert" class="fault">${fault}</p>`}
${client && html`<dl><div><dt>Redirect URI of the client</dt><dd><code>${client.redirectUri}</code></dd></div></dl>`}
<form method="post" action="${action}" autocomplete="off">
${client && clientInputs(client)}
${fields.map(inputOf)}
<button type="submit">${fields.length === 0 && client === null ? 'Try again' : 'Save and connect'}</button></form>
<p class="soft">Slipway stores these values encrypted, sends them to <code>${upstreamHost}</code>${
      clientHost && html`, the client only to <code>${clientHost}</code>,`
    } and shows them to
nobody. Go on only if you expected this page; otherwise close it, and nothing happens.</p>`,
  );
}

/** For inputs that browsers must not fill in or correct. */
const PLAIN = html`autocomplete="off" spellcheck="false"`;

/** The issuer is sent as well: a client is stored for the server that this page named, or not at all. */
function clientInputs({ issuer, state }: ClientRequest): Html {
  const hint = state === 'given' ? 'A client is stored. Leave ID and secret empty to go on with it.' : '';
  return html`<input type="hidden" name="${clientFields.issuer}" value="${issuer}">
<p><label for="ci">Client ID</label>
<span id="cih" class="hint">${hint}</span>
<input id="ci" name="${clientFields.id}" aria-describedby="cih" type="text" ${PLAIN}></p>
<p><label for="cs">Client secret (optional)</label>
<span id="csh" class="hint">Leave it empty for a client without one.</span>
<input id="cs" name="${clientFields.secret}" aria-describedby="csh" type="password" ${PLAIN}></p>`;
}

function inputOf(field: SetupField, index: number): Html {
  const { name, label, description, isRequired, isStored, fault } = field;
  const id = `f${index}`;
  const hints = [
    description !== undefined && html`<span class="hint">${description}</span>`,
    isStored && html`<span class="hint">A value is stored. Leave this empty to keep it.</span>`,
    fault !== null && html`<span class="fault" role="alert">${fault}</span>`,
  ];
  const required = isRequired && !isStored && html` required`;
  const invalid = fault !== null && html` aria-invalid="true"`;
  const attributes = html`id="${id}" name="${name}" aria-describedby="${id}h"${required}${invalid}`;
  return html`<p><label for="${id}">${label}${!isRequired && ' (optional)'}</label>
<span id="${id}h">${hints}</span>
${controlOf(field, attributes)}</p>\n`;
}

function controlOf({ allowed, isSecret, isStored, control, limits, fallback = '' }: SetupField, base: Html): Html {
  const shown = isStored ? '' : fallback;
  if (allowed !== null) {
    const options = ['', ...allowed].map(
      (value) => html`<option value="${value}"${value === shown && html` selected`}>${value}</option>`,
    );
    return html`<select ${base}>${options}</select>`;
  }
  const bounds = Object.entries(limits).map(([name, value]) => html` ${name}="${value}"`);
  const attributes = html`${base}${bounds} ${PLAIN}`;
  if (isSecret) return html`<input ${attributes} type="password">`;
  // The first line break of a text area is not part of its value.
  if (control === 'lines') return html`<textarea ${attributes} rows="5">\n${shown}</textarea>`;
  const value = shown !== '' && html` value="${shown}"`;
  if (control === 'line') return html`<input ${attributes} type="text"${value}>`;
  return html`<input ${attributes} type="number" step="${control === 'integer' ? 1 : 'any'}"${value}>`;
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
