/** The page of a connection: its state with the one way on, how an app connects, its tools and last calls. A part that is null is left out. */
import { formOf, withReason } from '../../../platform/pages/forms.js';
import type { Framed } from '../../../platform/pages/frame.js';
import { html, type Html } from '../../../platform/pages/html.js';
import { timeOf } from '../../../platform/pages/times.js';
import { accessPart, recordingPart, settingsPart } from './connection-settings.page.js';
import type { Calls, ConnectionView } from './connection-view.js';
import { stateOf } from '../states.js';

/** Sentences for the word in the address after a form. */
export const DONE = {
  'set-up': 'The connection is set up. It is yours.',
  added: 'The server is added. The connection is yours.',
  changed: 'The change is stored.',
  record: 'Calls are recorded from now on.',
  stop: 'Calls are recorded no longer. The recorded ones stay.',
  forget: 'The recorded calls are deleted.',
  granted: 'The account may use this connection now.',
  ended: 'The access is revoked.',
} as const;

/** The page of a connection. Of a guest's it shows the name, the state and the kind of its reason. */
export function connectionPage(view: ConnectionView): Framed {
  const { namespace, connection } = view;
  const { connectionId, name } = connection;
  return {
    title: name,
    asRequest: `/connect/${encodeURIComponent(namespace)}/${encodeURIComponent(connectionId)}`,
    body: withReason(
      view,
      html`${statePart(view)}
${view.connect}
${accessPart(view)}
${view.tools}
${callsPart(view)}
${recordingPart(view)}
${settingsPart(view)}`,
    ),
  };
}

function statePart(view: ConnectionView): Html {
  const { namespace, connection, grant, setupUrl } = view;
  const { connectionId, status, suspended } = connection;
  const { state, message, nextStep } = status;
  const isGuest = grant?.level === 'call';
  const isWaiting = state === 'auth_required' || state === 'input_required';
  return html`<section aria-labelledby="state"><h2 id="state">State</h2>
<p><code>${namespace}/${connectionId}</code></p>
<p>${stateOf({ status, suspended }, { isManager: !isGuest }).badge}</p>
${isWaiting && isGuest && html`<p>${message}</p>`}
${!isGuest && message !== undefined && html`<p>${message}</p>`}
${!isGuest && setupUrl === undefined && nextStep !== undefined && html`<p>${nextStep}</p>`}
${setupUrl !== undefined && html`<p><a class="button" href="${setupUrl}">${state === 'input_required' ? 'Enter the values' : 'Log in'}</a></p>`}
<p>You may ${grant?.tools ? html`call ${grant.tools.length} of its tools: ${grant.tools.join(', ')}` : isGuest ? 'call its tools' : 'call its tools and change it'}.</p>
${view.mayRead && formOf(view, 'check', [], html`<button type="submit" class="plain">Check every step</button>`)}
${stepsOf(view)}</section>`;
}

const STEP_SIGNS: Record<string, Html> = {
  ok: html`<b class="good">✓ ok</b>`,
  failed: html`<b class="bad">✕ failed</b>`,
  skipped: html`<b>· skipped</b>`,
};

function stepsOf({ diagnosis }: ConnectionView): Html | undefined {
  return (
    diagnosis &&
    html`<div role="status"><h3 id="steps">Every step</h3><ol>${diagnosis.steps.map(
      ({ step, status, evidence, ms }) =>
        html`<li><b>${step}</b> ${STEP_SIGNS[status]}: ${evidence} <span class="hint">${Math.round(ms)} ms</span></li>`,
    )}</ol><p>${diagnosis.verdict}</p></div>`
  );
}

/** Outcomes of calls in words. */
const OUTCOMES: Record<string, Html> = {
  ok: html`<b class="good">✓ ok</b>`,
  toolError: html`<b class="bad">✕ the tool answered with an error</b>`,
  rpcError: html`<b class="bad">✕ the server refused it</b>`,
  exception: html`<b class="bad">✕ failed</b>`,
  denied: html`<b class="bad">⊘ denied</b>`,
  canceled: html`<b>· canceled</b>`,
};

function callsPart({ calls }: ConnectionView): Html | null {
  if (!calls) return null;
  const rows = calls.invocations.map((call) => {
    const { at, tool, rpcMethod, caller, response, duration, exceptions } = call;
    return html`<li>${timeOf(at)} ${caller ? html`<strong>${caller.account.name ?? 'a deleted account'}</strong>, ${withWhat(caller)}` : 'this service'}:
<code>${tool ?? rpcMethod ?? 'a message that cannot be read'}</code> ${OUTCOMES[response.outcome] ?? html`<b>· end not known</b>`}, ${duration.wallMs} ms
${exceptions[0] && html`<span class="hint">${exceptions[0].message}</span>`}</li>`;
  });
  return html`<section aria-labelledby="calls"><h2 id="calls">Last calls</h2>
${rows.length === 0 ? html`<p>None.</p>` : html`<ul class="entries">${rows}</ul>`}
${calls.total > rows.length && html`<p>The newest ${rows.length}. The log of the connection has more.</p>`}</section>`;
}

function withWhat({ credential, client }: NonNullable<Calls['invocations'][number]['caller']>): string {
  const { kind, name } = credential;
  const credentialName = kind === 'key' ? `key “${name ?? 'revoked'}”` : (name ?? 'a login that no longer exists');
  return client === null ? credentialName : `${client}, ${credentialName}`;
}
