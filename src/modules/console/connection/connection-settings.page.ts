/** The parts of the page of a connection for whoever owns or manages it: who may call it, recordings, settings. */
import { formOf, type Field } from '../../../platform/pages/forms.js';
import { html, type Html } from '../../../platform/pages/html.js';
import { timeOf } from '../../../platform/pages/times.js';
import type { ConnectionView } from './connection-view.js';
import { grantEntry } from '../grant-entry.page.js';
import { jsonText } from './schema-form.js';

/** Longest part of arguments and of a result that is shown. */
const SHOWN_CHARS_MAX = 1_000;

/** Who may call the connection and why, with End and *Grant access*. */
export function accessPart(view: ConnectionView): Html | null {
  const { access, namespace, connection } = view;
  if (!access) return null;
  const { owner, isOrganization, granted, ofNamespace } = access;
  const { currentPage, totalPages } = granted.pagination;
  const rows = [
    ...granted.grants.map((grant) => grantEntry(view, grant, { kind: 'connection', name: connection.connectionId })),
    ...ofNamespace.map((grant) => grantEntry(view, grant, { kind: 'namespace', name: namespace }, false)),
  ];
  const link = (page: number, label: string) =>
    page >= 1 && page <= totalPages && html` <a href="${view.address}?grants=${page}#access">${label}</a>`;
  const levels = [
    ['call', 'call all its tools'],
    ['tools', 'call only the tools below'],
    ['manage', 'call and change it'],
  ] as const;
  const plain = html`autocomplete="off" spellcheck="false"`;
  const fields: Field[] = [
    { name: 'account', label: 'Account', attributes: html`maxlength="255" required ${plain}` },
    { name: 'level', label: 'May', options: levels },
    { name: 'tools', label: 'Tools', hint: 'One name on a line', rows: 3 },
    {
      name: 'until',
      member: 'expiresAt',
      label: 'Until',
      hint: 'The access ends when this day begins, in UTC. Empty: no end',
      type: 'date',
    },
  ];
  return html`<section aria-labelledby="access"><h2 id="access">Access</h2>
<p><strong>${owner}</strong> owns <strong>${namespace}</strong> and may do everything.${isOrganization && ' Its members may call this, each by role.'}</p>
${rows.length > 0 && html`<ul class="entries">${rows}</ul>`}
${totalPages > 1 && html`<p>Page ${currentPage} of ${totalPages}.${link(currentPage - 1, 'Previous')}${link(currentPage + 1, 'Next')}</p>`}
<p>Nobody else sees that it exists.</p>
<details${view.rejected?.name === 'grant' && html` open`}><summary>Grant access</summary>
${formOf(view, 'grant', fields, html`<button type="submit">Grant access</button>`)}</details></section>`;
}

/** The recording of calls, or the scenario of a mock. */
export function recordingPart(view: ConnectionView): Html | null {
  const { recording, recorded, changes, mayRead, connection } = view;
  const { mock } = connection;
  if (mock && mayRead) {
    return html`<section aria-labelledby="scenario"><h2 id="scenario">Mock scenario</h2>
<p>Calls are simulated here and never reach the server.</p>
${mock.scenario === undefined ? html`<p>No scenario: answers are made by the schemas of the tools.</p>` : html`<pre>${mock.scenario}</pre>`}</section>`;
  }
  if (!recording) return null;
  const { enabled, until, calls, bytes, tools } = recording;
  const button = (action: string, label: string) =>
    formOf(view, action, [], html`<button type="submit" class="plain">${label}</button>`);
  return html`<section aria-labelledby="recording"><h2 id="recording">Recording</h2>
<p>${enabled && until !== undefined ? html`Tool calls are recorded until ${timeOf(until)}.` : 'Tool calls are not recorded.'}
A mock with the scenario <code>replay:${connection.connectionId}</code> returns the recorded results.</p>
${calls > 0 && html`<p>${calls} ${calls === 1 ? 'call' : 'calls'}, ${Math.ceil(bytes / 1024)} KB:</p><ul>${tools.map(({ name, calls: count }) => html`<li><code>${name}</code>: ${count}</li>`)}</ul>`}
${
  recorded.length > 0 &&
  html`<details><summary>The first ${recorded.length} recorded calls</summary><ul class="entries">${recorded.map(
    ({ at, tool, arguments: args, result }) =>
      html`<li>${timeOf(at)} <code>${tool}</code><pre>${shorten(args)}</pre><pre>${shorten(result)}</pre></li>`,
  )}</ul></details>
<p><a href="${view.address}/fixture" download>Download the recording as a fixture</a></p>`
}
${changes && (enabled ? button('stop', 'Stop recording') : button('record', 'Record for 7 days'))}
${changes && (calls > 0 || enabled) && button('forget', 'Delete the recorded calls')}</section>`;
}

/** A value as JSON, without its end where that is long. */
function shorten(value: unknown): string {
  const text = jsonText(value, 2);
  return text.length > SHOWN_CHARS_MAX ? `${text.slice(0, SHOWN_CHARS_MAX)}…` : text;
}

/** The settings, each with a form of its own. */
export function settingsPart(view: ConnectionView): Html | null {
  const { connection, changes, rejected } = view;
  if (!changes) return null;
  const { connectionId, name, metadata, callTimeoutMs, mcpUrl } = connection;
  const typed: Field = {
    name: 'typed',
    label: html`Type the id <strong>${connectionId}</strong>`,
    attributes: html`autocomplete="off" spellcheck="false" required`,
  };
  const form = (field: Field, label: string) =>
    formOf(view, `settings/${field.name}`, [field], html`<button type="submit" class="plain">${label}</button>`);
  return html`<section aria-labelledby="settings"><h2 id="settings">Settings</h2>
${changes.canMove && form({ name: 'mcpUrl', label: 'Address', hint: 'The connection has never worked: another address is taken. Headers, login and recording of the old one end', value: mcpUrl ?? '' }, 'Take this address')}
<details${/^(settings\/|delete$)/.test(rejected?.name ?? '') && html` open`}><summary>Name, metadata, headers, tools</summary>
${form({ name: 'name', label: 'Name', hint: '1 to 255 characters', value: name }, 'Save the name')}
${form({ name: 'metadata', label: 'Metadata', hint: 'A JSON object of your own', value: jsonText(metadata, 2), rows: 4 }, 'Save the metadata')}
${mcpUrl !== null && form({ name: 'headers', label: 'Headers', hint: 'One on a line: name, colon, value. They replace all that are stored, which are never shown. Empty: none', rows: 4 }, 'Replace the headers')}
${form({ name: 'callTimeoutMs', label: 'Silence after which a call fails', hint: 'In milliseconds, 100 to 3600000. Empty: as the service has it', value: `${callTimeoutMs ?? ''}` }, 'Save the time')}
<p><a href="${view.root}ui/add/${encodeURIComponent(view.namespace)}/${encodeURIComponent(connectionId)}/tools?from=settings">Choose the tools that are offered</a></p>
${
  changes.canDelete &&
  html`<h3>Delete</h3>
${formOf(view, 'delete', [typed], html`<button type="submit" class="plain">Delete this connection</button>`)}`
}</details></section>`;
}
