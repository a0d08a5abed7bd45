import { escaped, messagePage, page, type Page } from '../../../platform/pages/page.js';
import type { AuthorizeView, ClientRequest, FormView, SetupField, SetupResult, SetupView } from './setup.types.js';
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
<p>Whatever waited for this continues by itself. You can close this page.</p>`,
  );
}

function authorizePage({ label, upstreamHost, issuerHost, signInHost, scopes, action }: AuthorizeView): Page {
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
    `Authorize ${label}`,
    `<p>Slipway asks for access to the MCP server <strong>${escaped(label)}</strong> in your name. You decide about it at
<strong>${escaped(signInHost)}</strong>, where the button leads; Slipway never sees your password.</p>
<dl>
${rows.map(([name, html]) => `<div><dt>${name}</dt><dd>${html}</dd></div>`).join('\n')}
</dl>
<form method="post"${action === undefined ? '' : ` action="${escaped(action)}"`}><button type="submit">Continue to ${escaped(signInHost)}</button></form>
<p class="soft">Whoever can use this server through Slipway then acts with the access you give. Go on only if you expected this
page; otherwise close it, and nothing happens.</p>`,
  );
}

function formPage({ label, upstreamHost, action, reason, fields, client, fault }: FormView): Page {
  // Required fields first: stored schemas do not keep the order of their publisher.
  const sorted = fields.toSorted((a, b) => Number(b.isRequired) - Number(a.isRequired));
  return page(
    `Set up ${label}`,
    `<p>The connection <strong>${escaped(label)}</strong> to <code>${escaped(upstreamHost)}</code> does not work yet.
${escaped(reason)}</p>
${fault === null ? '' : `<p role="alert" class="fault">${escaped(fault)}</p>`}
${client === null ? '' : `<dl><div><dt>Redirect URI of the client</dt><dd><code>${escaped(client.redirectUri)}</code></dd></div></dl>`}
<form method="post" action="${escaped(action)}" autocomplete="off">
${client === null ? '' : clientInputs(client)}
${sorted.map(inputOf).join('\n')}
<button type="submit">${sorted.length === 0 && client === null ? 'Try again' : 'Save and connect'}</button></form>
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

function controlOf({ allowed, isSecret }: SetupField, attributes: string): string {
  if (allowed === null) {
    return `<input ${attributes} type="${isSecret ? 'password' : 'text'}" autocomplete="off" spellcheck="false">`;
  }
  const options = ['', ...allowed].map((value) => `<option value="${escaped(value)}">${escaped(value)}</option>`);
  return `<select ${attributes}>${options.join('')}</select>`;
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
