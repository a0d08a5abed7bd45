/** The parts of the page of a connection for whoever owns or manages it: recordings, settings. */
import { button, buttonLink, card, details, snippet } from '../../../platform/pages/components.js';
import { formOf, type Field } from '../../../platform/pages/forms.js';
import { html, type Html } from '../../../platform/pages/html.js';
import { jsonText } from '../../../platform/pages/json-text.js';
import { timeOf } from '../../../platform/pages/times.js';
import type { ConnectionView } from './connection-view.js';

/** Longest part of arguments and of a result that is shown. */
const SHOWN_CHARS_MAX = 1_000;

/** The recording of calls, or the scenario of a mock. */
export function recordingPart(view: ConnectionView): Html | null {
  const { recording, recorded, changes, mayRead, connection } = view;
  const { mock } = connection;
  if (mock && mayRead) {
    return card(
      'scenario',
      'Mock scenario',
      html`<p>Calls are simulated here and never reach the server.</p>
${mock.scenario === undefined ? html`<p>No scenario: answers are made by the schemas of the tools.</p>` : snippet('mock', 'Scenario', mock.scenario)}`,
    );
  }
  if (!recording) return null;
  const { enabled, until, calls, bytes, tools } = recording;
  const act = (action: string, label: string, look?: string) => formOf(view, action, [], button(label, { look }));
  return card(
    'recording',
    'Recording',
    html`<p>${enabled && until !== undefined ? html`Tool calls are recorded until ${timeOf(until)}.` : 'Tool calls are not recorded.'}
A mock with the scenario <code>replay:${connection.connectionId}</code> returns the recorded results.</p>
${calls > 0 && html`<p>${calls} ${calls === 1 ? 'call' : 'calls'}, ${Math.ceil(bytes / 1024)} KB: ${tools.map(({ name, calls: count }) => html`<code>${name}</code>: ${count} `)}</p>`}
${
  recorded.length > 0 &&
  html`${details(
    `The first ${recorded.length} recorded calls`,
    html`${recorded.map(({ at, tool, arguments: args, result }, i) => html`<p>${timeOf(at)} <code>${tool}</code></p>${snippet(`arguments-${i}`, 'Arguments', shorten(args))}${snippet(`result-${i}`, 'Result', shorten(result))}`)}`,
  )}
<p><a href="${view.address}/fixture" download>Download the recording as a fixture</a></p>`
}
${changes && (enabled ? act('stop', 'Stop recording') : act('record', 'Record for 7 days'))}
${changes && (calls > 0 || enabled) && act('forget', 'Delete the recorded calls', 'danger')}`,
  );
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
    html`${formOf(view, `settings/${field.name}`, [field], button(label))}<hr>`;
  const tools = `${view.root}ui/add/${encodeURIComponent(view.namespace)}/${encodeURIComponent(connectionId)}/tools?from=settings`;
  return card(
    'settings',
    'Settings',
    html`${changes.canMove && form({ name: 'mcpUrl', label: 'Address', hint: 'The connection has never worked: another address is taken. Headers, login and recording of the old one end', value: mcpUrl ?? '' }, 'Take this address')}
${details(
  'Name, metadata, headers, time',
  html`${form({ name: 'name', label: 'Name', hint: '1 to 255 characters', value: name }, 'Save the name')}
${form({ name: 'metadata', label: 'Metadata', hint: 'A JSON object of your own', value: jsonText(metadata, 2), rows: 4 }, 'Save the metadata')}
${mcpUrl !== null && form({ name: 'headers', label: 'Headers', hint: 'One on a line: name, colon, value. They replace all that are stored, which are never shown. Empty: none', rows: 4 }, 'Replace the headers')}
${form({ name: 'callTimeoutMs', label: 'Silence after which a call fails', hint: 'In milliseconds, 100 to 3600000. Empty: as the service has it', value: `${callTimeoutMs ?? ''}` }, 'Save the time')}`,
  rejected?.name.startsWith('settings/'),
)}
${
  changes.canDelete &&
  details(
    html`<span class="danger">Delete this connection</span>`,
    formOf(view, 'delete', [typed], button('Delete this connection', { look: 'danger primary' })),
    rejected?.name === 'delete',
  )
}`,
    { end: buttonLink(tools, 'Choose the tools that are offered', { look: 'small' }) },
  );
}
