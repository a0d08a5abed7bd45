import {
  button,
  buttonLink,
  card,
  details,
  formOf,
  html,
  jsonText,
  snippet,
  type Field,
  type Html,
} from '../../../extension.js';
import type { ConnectionView } from './connection-view.js';

export function mockPart({ connection: { mock }, mayRead }: ConnectionView): Html | undefined | false {
  return (
    mayRead &&
    mock &&
    card(
      'scenario',
      'Mock scenario',
      html`<p>Calls are simulated here and never reach the server.</p>
${mock.scenario === undefined ? html`<p>No scenario: answers are made by the schemas of the tools.</p>` : snippet('mock', 'Scenario', mock.scenario)}`,
    )
  );
}

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
