/** The parts of the page of a connection for whoever owns or manages it: who may call it, recordings, settings. */
import { focusOf, openForm, readTyped } from '../../../platform/pages/forms.js';
import { html, type Html } from '../../../platform/pages/html.js';
import { timeOf } from '../../../platform/pages/times.js';
import { headerNamesIn } from './connection-forms.js';
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
  const value = (field: string) => readTyped(view, 'grant', '', field);
  const levels = [
    ['call', 'call all its tools'],
    ['tools', 'call only the tools below'],
    ['manage', 'call and change it'],
  ] as const;
  return html`<section aria-labelledby="access"><h2 id="access">Access</h2>
<p><strong>${owner}</strong> owns <strong>${namespace}</strong> and may do everything.${isOrganization && ' Its members may call this, each by role.'}</p>
${rows.length > 0 && html`<ul class="entries">${rows}</ul>`}
${totalPages > 1 && html`<p>Page ${currentPage} of ${totalPages}.${link(currentPage - 1, 'Previous')}${link(currentPage + 1, 'Next')}</p>`}
<p>Nobody else sees that it exists.</p>
<details${view.rejected?.name === 'grant' && html` open`}><summary>Grant access</summary>${openForm(view, 'grant')}
<p><label for="account">Account</label><input id="account" name="account" value="${value('account')}" maxlength="255" autocomplete="off" spellcheck="false" required${focusOf(view, 'grant')}></p>
<p><label for="level">May</label><select id="level" name="level">${levels.map(
    ([level, label]) => html`<option value="${level}"${value('level') === level && html` selected`}>${label}</option>`,
  )}</select></p>
<p><label for="only">Tools</label><span id="only-hint" class="hint">One name on a line</span>
<textarea id="only" name="tools" rows="3" aria-describedby="only-hint" spellcheck="false">${value('tools')}</textarea></p>
<p><label for="until">Until</label><span id="until-hint" class="hint">The access ends when this day begins, in UTC. Empty: no end</span>
<input id="until" name="until" type="date" value="${value('until')}" aria-describedby="until-hint"></p>
<button type="submit">Grant access</button></form></details></section>`;
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
    html`${openForm(view, action)}<button type="submit" class="plain">${label}</button></form>`;
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
  const value = (key: string, stored: string) =>
    rejected?.name === `settings/${key}` ? (rejected.values.get(key) ?? '') : stored;
  const field = (key: string, label: string, hint: string, input: (attributes: Html) => Html, button: string) =>
    html`${openForm(view, `settings/${key}`)}
<p><label for="set-${key}">${label}</label><span id="hint-${key}" class="hint">${hint}</span>
${input(html`id="set-${key}" name="${key}" aria-describedby="hint-${key}"${focusOf(view, `settings/${key}`)}`)}</p>
<button type="submit" class="plain">${button}</button></form>`;
  const text = (key: string, stored: string) => (attributes: Html) =>
    html`<textarea ${attributes} rows="4" spellcheck="false" autocomplete="off">${key === 'headers' ? headerNamesIn(value(key, stored)) : value(key, stored)}</textarea>`;
  const line = (key: string, stored: string) => (attributes: Html) =>
    html`<input ${attributes} value="${value(key, stored)}">`;
  return html`<section aria-labelledby="settings"><h2 id="settings">Settings</h2>
${changes.canMove && field('mcpUrl', 'Address', 'The connection has never worked: another address is taken. Headers, login and recording of the old one end', line('mcpUrl', mcpUrl ?? ''), 'Take this address')}
<details${/^(settings\/|delete$)/.test(rejected?.name ?? '') && html` open`}><summary>Name, metadata, headers, tools</summary>
${field('name', 'Name', '1 to 255 characters', line('name', name), 'Save the name')}
${field('metadata', 'Metadata', 'A JSON object of your own', text('metadata', jsonText(metadata, 2)), 'Save the metadata')}
${mcpUrl !== null && field('headers', 'Headers', 'One on a line: name, colon, value. They replace all that are stored, which are never shown. Empty: none', text('headers', ''), 'Replace the headers')}
${field('callTimeoutMs', 'Silence after which a call fails', 'In milliseconds, 100 to 3600000. Empty: as the service has it', line('callTimeoutMs', `${callTimeoutMs ?? ''}`), 'Save the time')}
<p><a href="${view.root}ui/add/${encodeURIComponent(view.namespace)}/${encodeURIComponent(connectionId)}/tools?from=settings">Choose the tools that are offered</a></p>
${
  changes.canDelete &&
  html`<h3>Delete</h3>${openForm(view, 'delete')}
<p><label for="delete-typed">Type the id <strong>${connectionId}</strong></label>
<input id="delete-typed" name="typed" value="${readTyped(view, 'delete', '', 'typed')}" autocomplete="off" spellcheck="false" required${focusOf(view, 'delete')}></p>
<button type="submit" class="plain">Delete this connection</button></form>`
}</details></section>`;
}
