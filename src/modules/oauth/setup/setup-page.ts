import { actions, button, facts, notice } from '../../../platform/pages/components.js';
import { fieldAs } from '../../../platform/pages/forms.js';
import { html, type Html } from '../../../platform/pages/html.js';
import { messagePage, noteLine, page, type Page, type PageEnv } from '../../../platform/pages/page.js';
import {
  keyFields,
  knownName,
  type AuthorizeView,
  type ClientRequest,
  type PageServer,
  type SetupField,
  type SetupView,
} from './setup.types.js';
import type { PreregisteredClient } from '../credentials.types.js';

const clientFields = { issuer: 'client.issuer', id: 'client.id', secret: 'client.secret' } as const;

/** Visible characters of RFC 6749 appendix A.1 and A.2. */
const VISIBLE = /^[\x20-\x7e]*$/;

/** A submitted client; null keeps the stored one. */
type SubmittedClient = { client: PreregisteredClient | null } | { fault: string };

/**
 * @param token renders the hidden input of a form; called for a page with one
 * @param action the address to which the form posts; by default that of the page
 */
export function setupPage(env: PageEnv, view: SetupView, token: () => Html, action?: string): Page {
  switch (view.kind) {
    case 'message':
      return messagePage(env, view.title, view.text, view);
    case 'authorized':
    case 'connected': {
      const name = html`<strong>${knownName(view)}</strong>`;
      const text =
        view.kind === 'authorized'
          ? html`${env.appName} may now use ${name}.`
          : html`${env.appName} is connected to ${name}.`;
      return page(
        env,
        view.kind === 'authorized' ? 'Authorized' : 'Connected',
        html`${notice(text)}
<p>The app that led you here continues by itself. You can close this page.</p>
${identity(view)}`,
      );
    }
    case 'authorize':
      return authorizePage(env, view, openForm(token(), action));
    case 'form': {
      const { appName } = env;
      const { upstreamHost, reason, fields, client, fault, note } = view;
      const serverName = knownName(view);
      const clientHost = client && new URL(client.issuer).host;
      return page(
        env,
        `Set up ${serverName}`,
        html`${presentation(view)}<p>${appName} cannot use <strong>${serverName}</strong>${ownName(view)} yet. ${reason}</p>
${fault !== null && notice(fault, 'bad')}
${client && facts([['Redirect URI', html`<code>${client.redirectUri}</code>`]])}
${openForm(token(), action)}
${client && clientInputs(client)}
${fields.map(inputOf)}
${actions(button(fields.length === 0 && client === null ? 'Try again' : 'Save and connect', { look: 'primary' }))}</form>
<p class="soft">${appName} stores these values encrypted, sends them to <code>${upstreamHost}</code>${
          clientHost && html`, client ID and secret only to <code>${clientHost}</code>,`
        } and shows them to
nobody. Go on only if you expected this page; otherwise close it, and nothing happens.</p>
${identity(view)}${noteLine(note)}`,
      );
    }
  }
}

function identity({ label, upstreamHost }: Pick<PageServer, 'label' | 'upstreamHost'>): Html {
  return html`<p class="soft">${label} · ${upstreamHost}</p>`;
}

function presentation({ iconUrl, description = '' }: PageServer): Html | null {
  if (iconUrl === undefined && description === '') return null;
  return html`<div class="who">${iconUrl !== undefined && html`<span class="tile large"><img src="${iconUrl}" alt=""></span>`}<p>${description}</p></div>`;
}

/** Returns the server's own name, if the page otherwise shows the name of the connection. */
function ownName({ name, title }: PageServer): Html | null {
  return name && title && name !== title ? html` (${title})` : null;
}

function openForm(token: Html, action: string | undefined): Html {
  return html`<form method="post"${action !== undefined && html` action="${action}"`} autocomplete="off">${token}`;
}

function authorizePage(env: PageEnv, view: AuthorizeView, form: Html): Page {
  const { appName } = env;
  const { upstreamHost, issuerHost, signInHost, scopes, chosen } = view;
  const name = knownName(view);
  const list = scopes.map((scope) => html`<li><code>${scope}</code></li>`);
  return page(
    env,
    `Connect ${name}`,
    html`${presentation(view)}<p>${appName} asks for access to <strong>${name}</strong>${ownName(view)} in your name. You decide about it at
<strong>${signInHost}</strong>, where the button leads. ${appName} never sees your password.</p>
${facts([
  ['The access is for', html`<code>${upstreamHost}</code>`],
  ['You sign in at', html`<code>${signInHost}</code>`],
  issuerHost !== signInHost && ['in the name of', html`<code>${issuerHost}</code>`],
  chosen?.issuer !== undefined && ['The owner chose', html`<code>${chosen.issuer}</code>`],
  chosen?.clientId !== undefined && ['as the client', html`<code>${chosen.clientId}</code>`],
  ['It will be asked for', list.length === 0 ? html`what is given by default` : html`<ul>${list}</ul>`],
])}
${form}${actions(button(`Continue to ${signInHost}`, { look: 'primary' }))}</form>
<p class="soft">Whoever can use ${name} through ${appName} then acts with the access you give. Go on only if you expected this
page; otherwise close it, and nothing happens.</p>
${identity(view)}`,
  );
}

const ENTER_AGAIN = 'Enter it again: it is not shown here.';

/** Attributes of inputs that browsers must not fill in or correct. */
const PLAIN = html`autocomplete="off" spellcheck="false"`;

/** Renders inputs for a client. They include the issuer: a client is stored only for the server that this page named. */
function clientInputs({ issuer, state, entered }: ClientRequest): Html {
  const { id: content = '', hasSecret = false } = entered ?? {};
  const stored = state === 'given' && 'A client ID is stored. Leave ID and secret empty to go on with it.';
  const hint = hasSecret ? ENTER_AGAIN : 'Leave it empty if there is none.';
  return html`<input type="hidden" name="${clientFields.issuer}" value="${issuer}">
${fieldAs({ id: 'ci', name: clientFields.id, label: 'Client ID', hint: stored, type: 'text', content, attributes: PLAIN })}
${fieldAs({ id: 'cs', name: clientFields.secret, label: 'Client secret (optional)', hint, type: 'password', attributes: PLAIN })}`;
}

function inputOf(field: SetupField, index: number): Html {
  const { name, label, description, isRequired, isSecret, isStored, entered, fault } = field;
  const { allowed, control, limits, fallback = '' } = field;
  const isLine = allowed === null && (control !== 'lines' || isSecret);
  const isNumber = control === 'number' || control === 'integer';
  const type = isSecret ? 'password' : control === 'line' ? 'text' : isNumber ? 'number' : control;
  const step = isLine && isNumber && !isSecret && html` step="${control === 'integer' ? 1 : 'any'}"`;
  const bounds = allowed === null && Object.entries(limits).map(([limit, value]) => html` ${limit}="${value}"`);
  const hints = [
    description,
    isStored && entered !== null && 'A value is stored. Leave this empty to keep it.',
    entered === null && ENTER_AGAIN,
  ].filter(Boolean);
  return fieldAs({
    id: `f${index}`,
    name,
    label: html`${label}${!isRequired && ' (optional)'}`,
    hint: hints.join(' '),
    error: fault,
    content: isSecret ? '' : entered || (isStored ? '' : fallback),
    type: isLine ? type : undefined,
    rows: isLine ? undefined : 5,
    options: allowed ? ['', ...allowed].map((value) => [value, value] as const) : undefined,
    attributes: html`autocomplete="off"${isLine && html` spellcheck="false"`}${isRequired && !isStored && html` required`}${bounds}${step}`,
  });
}

/** Returns the page with the entered values, except those of secret fields. An emptied field shows its default, which applies. */
export function withEntered(view: SetupView, form: URLSearchParams): SetupView {
  if (view.kind !== 'form') return view;
  const entered = (name: string) => form.get(name)?.replaceAll('\r\n', '\n').trim() ?? '';
  const fields = view.fields.map((field) => {
    const value = entered(field.name);
    return value === '' ? field : { ...field, entered: field.isSecret ? null : value };
  });
  const id = entered(clientFields.id);
  const client = view.client && { ...view.client, entered: { id, hasSecret: entered(clientFields.secret) !== '' } };
  return { ...view, fields, client };
}

export function readClient(form: URLSearchParams, { state }: ClientRequest): SubmittedClient {
  const text = (name: string) => form.get(name)?.trim() ?? '';
  const clientId = text(clientFields.id);
  const secret = text(clientFields.secret);
  if (hasOtherValues(form)) return { fault: 'Enter a client ID or other values, not both.' };
  if (clientId === '' && secret !== '') return { fault: 'A client secret belongs to a client ID: enter both.' };
  if (clientId === '') return state === 'given' ? { client: null } : { fault: 'Nothing was filled in.' };
  if (!VISIBLE.test(clientId + secret)) {
    return { fault: 'A client ID and its secret have only plain letters, digits and signs.' };
  }
  const issuer = text(clientFields.issuer);
  return { client: { issuer, clientId, clientSecret: secret === '' ? null : secret } };
}

/** Returns true if a client was submitted, or if the form has fields for one and nothing was filled in. */
export function isForClient(form: URLSearchParams): boolean {
  const hasClient = [clientFields.id, clientFields.secret].some((name) => (form.get(name)?.trim() ?? '') !== '');
  return hasClient || (form.has(clientFields.id) && !hasOtherValues(form));
}

/** Returns true if the form has values. A header name alone is not a value: the form fills it in. */
function hasOtherValues(form: URLSearchParams): boolean {
  return [...form].some(([name, value]) => isValue(name) && value.trim() !== '');
}

export function isValue(name: string): boolean {
  return /^(?:headers|query)\./.test(name) || name === keyFields.value;
}
