import {
  button,
  card,
  columns,
  type Field,
  formOf,
  type Framed,
  type FormsView,
  html,
  type Html,
  steps,
  tabs,
  timeline,
  withReason,
} from '../../extension.js';

const SOURCES = [
  ['url', 'URL'],
  ['file', 'File'],
  ['code', 'Code'],
] as const;

export type Source = (typeof SOURCES)[number][0];

export function toSource(text: unknown): Source {
  return SOURCES.find(([source]) => source === text)?.[0] ?? 'url';
}

export const VISIBILITIES = [
  ['private', 'Private: only you and those you grant access find and call it'],
  ['restricted', 'Restricted: everyone finds it, and you decide who calls it'],
  ['public', 'Public: everyone with an account finds and calls it'],
] as const;

export type Visibility = (typeof VISIBILITIES)[number][0];

export interface PublishView extends FormsView {
  source: Source;
  /** Namespaces of the person; empty before the first one is claimed. */
  namespaces: string[];
  proposal: string;
  /** Null for a new server. */
  server: string | null;
  values: { url?: string; configSchema?: string };
  notice?: string;
}

const EXAMPLE = `import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';

export default () => {
  const server = new McpServer({ name: 'weather', version: '1.0.0' });
  server.registerTool('forecast', { description: 'Returns the forecast.' }, async () => ({
    content: [{ type: 'text', text: 'Sunny' }],
  }));
  return server.server;
};
`;

const HAPPENS = [
  ['Deploy', 'A module or bundle starts in isolation; a URL is called.'],
  ['Scan', 'Tools are listed and checked.'],
  ['Metadata', 'Name, icon and schema are stored.'],
  ['Publish', 'Calls move to the release. No call is lost.'],
] as const;

export function publishPage(view: PublishView): Framed {
  const { source, server, address } = view;
  const query = server === null ? '' : `&${String(new URLSearchParams({ server }))}`;
  const links = SOURCES.map(([name, label]) => [`${address}?source=${name}${query}`, label] as const);
  const form = html`${tabs('Source', links, `${address}?source=${source}${query}`)}
${formOf(view, source, [...sourceFields(view), ...serverFields(view)], button(server === null ? 'Publish' : 'Publish a release', { look: 'primary' }), { hasFiles: source !== 'url' })}`;
  return {
    title: server === null ? 'Publish a server' : `Publish ${server}`,
    notice: view.notice,
    crumbs: [['Publish', 'ui/publish'], ...(server === null ? [] : [[server] as const])],
    head: { lead: 'Slipway runs your server or calls it at its URL, scans it, and gives it one address.' },
    body: withReason(
      view,
      html`${steps(['Source', 'Release', 'Live'], 0)}
${columns(
  card('source', 'Source', form),
  card('next', 'What happens next', timeline(HAPPENS.map(([name, text]) => ['off', name, text] as const))),
)}`,
    ),
  };
}

function sourceFields({ source, values }: PublishView): (Field | Html)[] {
  if (source === 'url') {
    const attributes = html`required type="url" maxlength="2048" placeholder="https://weather.example.com/mcp"`;
    return [
      {
        name: 'url',
        member: 'upstreamUrl',
        label: 'URL',
        hint: 'The MCP endpoint of a server that runs elsewhere',
        value: values.url,
        attributes,
      },
    ];
  }
  if (source === 'file') {
    const hint = 'A JavaScript module (.js, .mjs) of at most 10 MB, or an MCPB bundle (.mcpb) of at most 25 MB';
    return [
      {
        name: 'file',
        member: 'module',
        label: 'File',
        type: 'file',
        hint,
        attributes: html`required accept=".js,.mjs,.mcpb"`,
      },
    ];
  }
  const hint = 'One TypeScript or JavaScript file of at most 128 KB';
  return [
    {
      name: 'code',
      member: 'source',
      label: 'Module',
      rows: 14,
      hint,
      value: EXAMPLE,
      attributes: html`class="mono" required`,
    },
  ];
}

function serverFields({ namespaces, proposal, server, values }: PublishView): (Field | Html)[] {
  const schema: Field = {
    name: 'configSchema',
    label: 'Configuration schema',
    rows: 4,
    hint: 'JSON Schema of the values that each user enters. Optional',
    value: values.configSchema,
    attributes: html`class="mono"`,
  };
  const note: Field = {
    name: 'note',
    member: 'commitMessage',
    label: 'What changed',
    hint: 'Shown in the list of releases. Optional',
    attributes: html`maxlength="500"`,
  };
  if (server !== null) return [html`<input type="hidden" name="server" value="${server}">`, schema, note];
  const namespace: Field[] =
    namespaces.length > 0
      ? [{ name: 'namespace', label: 'Namespace', options: namespaces.map((name) => [name, name] as const) }]
      : [];
  const name: Field = {
    name: 'name',
    label: 'Name',
    hint: namespaces.length > 0 ? '3 to 39 letters, digits, hyphens and underscores' : `Published as ${proposal}/name`,
    attributes: html`required maxlength="39" placeholder="weather" autocapitalize="none" spellcheck="false"`,
  };
  const visibility: Field = { name: 'visibility', label: 'Visibility', options: VISIBILITIES, value: 'private' };
  return [...namespace, name, visibility, schema];
}
