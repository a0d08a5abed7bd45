import { authorizationField, fieldName, type SetupForm, type SetupSubject } from './setup-form.js';
import type { ClientRequest } from '../../oauth/setup-page.service.js';
import { clientFields } from './setup-client.js';
import { escaped, page, type Page } from '../../../platform/pages/page.js';
import type { RunFormField } from '../../releases/releases.types.js';

/** The page that asks a person for values. */
export function formPage({
  label,
  upstreamHost,
  action,
  reason,
  fields,
  client,
  wantsAuthorization,
  fault,
}: SetupForm): Page {
  // What must be given comes first: stored schemas do not keep the order of their publisher.
  const sorted = fields.toSorted((a, b) => Number(b.isRequired) - Number(a.isRequired));
  const all = wantsAuthorization ? [...sorted, authorizationField] : sorted;
  return page(
    `Set up ${label}`,
    `<p>The connection <strong>${escaped(label)}</strong> to <code>${escaped(upstreamHost)}</code> does not work yet.
${escaped(reason)}</p>
${fault === null ? '' : `<p role="alert" class="fault">${escaped(fault)}</p>`}
${client === null ? '' : `<dl><div><dt>Redirect URI of the client</dt><dd><code>${escaped(client.redirectUri)}</code></dd></div></dl>`}
<form method="post" action="${escaped(action)}" autocomplete="off">
${client === null ? '' : clientInputs(client)}
${all.map(inputOf).join('\n')}
<button type="submit">${all.length === 0 && client === null ? 'Try again' : 'Save and connect'}</button></form>
<p class="soft">Slipway stores these values encrypted, sends them to <code>${escaped(upstreamHost)}</code>${
      client === null ? '' : `, the client only to <code>${escaped(new URL(client.issuer).host)}</code>,`
    } and shows them to
nobody. Go on only if you expected this page; otherwise close it, and nothing happens.</p>`,
  );
}

/** The page after values that work were given. */
export function connectedPage({ label, upstreamHost }: SetupSubject): Page {
  return page(
    'Connected',
    `<p role="status">The connection <strong>${escaped(label)}</strong> to <code>${escaped(upstreamHost)}</code> works.</p>
<p>Whatever waited for this continues by itself. You can close this page.</p>`,
  );
}

/** The issuer goes along: a client is stored for the server that this page named, or not at all. */
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

function inputOf(field: RunFormField, index: number): string {
  const { place, name, label, description, isRequired, isGiven, fault } = field;
  const id = `f${index}`;
  const hints = [
    ...(description === undefined ? [] : [`<span class="hint">${escaped(description)}</span>`]),
    ...(isGiven ? ['<span class="hint">A value is stored. Leave this empty to keep it.</span>'] : []),
  ];
  const faultText = fault === null ? '' : `<span class="fault" role="alert">${escaped(fault)}</span>`;
  const attributes =
    `id="${id}" name="${escaped(fieldName(place, name))}" aria-describedby="${id}h"` +
    (isRequired && !isGiven ? ' required' : '') +
    (fault === null ? '' : ' aria-invalid="true"');
  return `<p><label for="${id}">${escaped(label)}${isRequired ? '' : ' (optional)'}</label>
<span id="${id}h">${hints.join('')}${faultText}</span>
${controlOf(field, attributes)}</p>`;
}

function controlOf({ allowed, isSecret }: RunFormField, attributes: string): string {
  if (allowed === null) {
    return `<input ${attributes} type="${isSecret ? 'password' : 'text'}" autocomplete="off" spellcheck="false">`;
  }
  const options = ['', ...allowed].map((value) => `<option value="${escaped(value)}">${escaped(value)}</option>`);
  return `<select ${attributes}>${options.join('')}</select>`;
}
