import {
  badge,
  button,
  buttonLink,
  card,
  columns,
  empty,
  facts,
  type Field,
  formOf,
  type Framed,
  type FormsView,
  html,
  type Html,
  list,
  popup,
  type Servers,
  tile,
  withReason,
} from '../../extension.js';
import type { OwnServer } from './own-servers.service.js';
import { VISIBILITIES } from './publish.page.js';
import { serverTabs } from './server-tabs.js';

type Visibility = OwnServer['detail']['visibility'];

export interface SettingsView extends FormsView {
  server: OwnServer;
  baseUrl: string;
  secrets: Awaited<ReturnType<Servers['secrets']>>;
  runtime: Awaited<ReturnType<Servers['runtime']>>;
  notice: string | null;
}

export function settingsPage(view: SettingsView): Framed {
  const { server, address } = view;
  return {
    title: server.detail.displayName,
    notice: view.notice,
    asRequest: `/servers/${encodeURIComponent(server.name)}`,
    crumbs: [['Catalogue', 'ui/catalogue'], [server.name, `ui/s/${encodeURIComponent(server.slug)}`], ['Settings']],
    head: { tile: tile(server.detail.displayName, { look: 'large' }), lead: html`<code>${server.name}</code>` },
    tabs: serverTabs(address, server.name, '/settings', true),
    body: withReason(
      view,
      columns(
        html`${visibilityCard(view)}${secretsCard(view)}${runtimeCard(view)}`,
        html`${textsCard(view)}${accessCard(view)}${deletionCard(view)}`,
      ),
    ),
  };
}

export function visibilityMeaning(visibility: Visibility, secrets: number): string {
  const count = `${secrets} ${secrets === 1 ? 'secret' : 'secrets'}`;
  const withSecrets = secrets === 0 ? '' : `, with its ${count}`;
  if (visibility === 'public') return `Everyone with an account finds this server and calls it${withSecrets}.`;
  if (visibility === 'restricted') {
    return `Everyone with an account finds this server. You, and those you grant access, call it${withSecrets}.`;
  }
  return `Only you, and those you grant access, find this server and call it${withSecrets}.`;
}

function visibilityCard(view: SettingsView): Html {
  const { server, secrets } = view;
  const { visibility } = server.detail;
  const options: Field = { name: 'visibility', label: 'Visibility', options: VISIBILITIES, value: visibility };
  const confirm: Field = {
    name: 'confirmSecrets',
    label: 'Secrets of a public server',
    type: 'checkbox',
    options: [['true', 'Every account may call this server with its secrets']],
  };
  const save = button('Save', { look: 'primary', about: 'Save the visibility' });
  return card(
    'visibility',
    'Visibility',
    html`<p>${visibilityMeaning(visibility, secrets.length)}</p>
${formOf(view, 'settings/visibility', [options, secrets.length > 0 && visibility !== 'public' && confirm], save)}`,
    { end: badge(visibility[0].toUpperCase() + visibility.slice(1), visibility === 'public' ? 'wait' : undefined) },
  );
}

function secretsCard(view: SettingsView): Html {
  const rows = view.secrets.map(({ name }) => {
    const sure = button('Delete', { look: 'danger', about: `Delete the secret ${name}` });
    return [
      html`<code>${name}</code>`,
      popup(
        'Delete…',
        formOf(view, 'settings/secret-delete', [html`<p>Programs that read it fail.</p>`], sure, { id: name }),
      ),
    ] as const;
  });
  const emptyList = empty('No secrets', 'A hosted module reads secrets by their names, such as an API key.');
  const name: Field = {
    name: 'name',
    label: 'Name',
    hint: 'Letters, digits and underscores. An existing name replaces its value',
    attributes: html`required maxlength="128" placeholder="WEATHER_API_KEY" autocapitalize="none" spellcheck="false" autocomplete="off"`,
  };
  const value: Field = {
    name: 'value',
    label: 'Value',
    type: 'password',
    attributes: html`required autocomplete="off"`,
  };
  return card(
    'secrets',
    'Secrets',
    html`${rows.length > 0 ? list(rows) : emptyList}
<p class="soft">Values are encrypted and never shown again.</p>
${formOf(view, 'settings/secret', [name, value], button('Save secret', { look: 'primary' }))}`,
    { count: rows.length },
  );
}

function runtimeCard(view: SettingsView): Html {
  const { egressAllow, logPayloads } = view.runtime;
  const hosts: Field = {
    name: 'egressAllow',
    label: 'Hosts that hosted code may reach',
    rows: 3,
    hint: 'One host a line, such as api.example.com or *.example.org. Empty: every public host',
    value: egressAllow?.join('\n') ?? '',
    attributes: html`class="mono"`,
  };
  const payloads: Field = {
    name: 'logPayloads',
    label: 'Arguments and results in the logs',
    options: [
      ['false', 'Not stored'],
      ['true', 'Stored, redacted: only while you debug'],
    ],
    value: String(logPayloads),
  };
  const save = button('Save', { look: 'primary', about: 'Save the runtime settings' });
  return card('runtime', 'Runtime', formOf(view, 'settings/runtime', [hosts, payloads], save));
}

function textsCard(view: SettingsView): Html {
  const { displayName, description, iconUrl } = view.server.detail;
  const isOwn = iconUrl?.startsWith(`${view.baseUrl}/`) ?? false;
  const fields: Field[] = [
    { name: 'displayName', label: 'Title', value: displayName, attributes: html`required maxlength="255"` },
    { name: 'description', label: 'Description', rows: 3, value: description },
    {
      name: 'iconUrl',
      label: 'Icon',
      hint: 'URL of an image. An uploaded icon goes before it',
      value: isOwn ? '' : (iconUrl ?? ''),
      attributes: html`type="url" maxlength="2048"`,
    },
  ];
  const save = button('Save', { look: 'primary', about: 'Save title and description' });
  return card('texts', 'Title and description', formOf(view, 'settings/texts', fields, save));
}

function accessCard({ server, baseUrl, address }: SettingsView): Html {
  const grants = `${address}/../../access/server/${encodeURIComponent(server.name)}`;
  return card(
    'access',
    'Access',
    html`${facts([
      ['Address', html`<code>${baseUrl}/ui/s/${encodeURIComponent(server.slug)}</code>`],
      server.detail.deploymentUrl !== null && ['MCP endpoint', html`<code>${server.detail.deploymentUrl}</code>`],
    ])}
<p>Send the address to those who use this server. Requests for access appear under <em>Needs you</em>. A grant opens a private or
restricted server to one account.</p>
${buttonLink(grants, 'Grants')}`,
  );
}

function deletionCard(view: SettingsView): Html {
  const { name } = view.server;
  const confirm: Field = {
    name: 'confirm',
    label: html`Type <code>${name}</code> to confirm`,
    attributes: html`required autocomplete="off" autocapitalize="none" spellcheck="false"`,
  };
  return card(
    'deletion',
    'Delete this server',
    html`<p>Deletes all releases, secrets and grants. Calls fail from then on.</p>
${formOf(view, 'settings/delete', [confirm], button('Delete server', { look: 'danger' }))}`,
  );
}
