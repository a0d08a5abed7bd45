import {
  badge,
  button,
  buttonLink,
  card,
  details,
  facts,
  formOf,
  html,
  snippet,
  steps,
  withReason,
  type Connections,
  type Field,
  type FormsView,
  type Framed,
  type Html,
} from '../../../extension.js';

export type Probed = Awaited<ReturnType<Connections['probe']>>;

/** The server to add. `command` starts a server on the machine of its user. */
export type AddTarget = Partial<Record<'mcpUrl' | 'server' | 'transport' | 'headers' | 'command', string>>;

export interface ListedServer {
  name: string;
  target: AddTarget;
}

export interface AddFields {
  id: string;
  name: string;
  namespace: string;
  header: string;
}

export interface AddView extends FormsView {
  root: string;
  what: string;
  hasHeader: boolean;
  /** Servers found for the field; null before the form was sent. */
  found: { probed: Probed; target: AddTarget } | { listed: ListedServer[] } | null;
  fields: AddFields;
  added: Map<string, string>;
  namespaces: string[];
  /** True if the form claims the person's first namespace. */
  isFirst: boolean;
}

const TOOLS_MAX = 200;

export function addPage(view: AddView): Framed {
  const { root, what: text, rejected, found: result } = view;
  const what: Field = {
    name: 'what',
    label: 'Address of the MCP server, or a name in the catalogue, or paste an mcp.json',
    value: text,
    rows: text.includes('\n') ? 8 : 2,
    attributes: html`required maxlength="20000"`,
  };
  return {
    title: 'Add a server',
    crumbs: [['Home', 'ui/'], ['Add a server']],
    head: {
      lead: 'Each step is saved when you submit it, so you can close the page at any time.',
      actions: buttonLink(`${root}ui/catalogue`, 'Pick from the catalogue'),
    },
    tabs: steps(ADD_STEPS, 0),
    body: withReason(
      view,
      html`${card(
        'what',
        'Server',
        html`${formOf(view, 'find', [what, view.hasHeader && html`<input type="hidden" name="header" value="${view.fields.header}">`], button('Find', { look: result ? '' : 'primary' }))}
${rejected && /^[^{:]+$/.test(text) && html`<p><a href="${root}ui/catalogue?${new URLSearchParams({ q: text.slice(0, 500) }).toString()}">Look for it in the catalogue</a></p>`}`,
      )}
${result && 'probed' in result && foundSection(view, result)}
${result && 'listed' in result && result.listed.map((server, at) => listedSection(view, server, at))}`,
    ),
  };
}

export const ADD_STEPS = ['Server', 'Log in', 'Tools', 'Access'];

function foundSection(view: AddView, { probed, target }: { probed: Probed; target: AddTarget }): Html {
  const { fields } = view;
  const { title, name, version, protocolVersion, message, nextStep, login, tools, hasMoreTools, didYouMean, state } =
    probed;
  const isFound = state !== 'error';
  const versions = [version !== null && `version ${version}`, protocolVersion !== null && `MCP ${protocolVersion}`];
  return card(
    'found',
    title ?? name ?? (!isFound ? 'Not found' : login ? 'Found: it needs a login or a key' : 'Found'),
    html`<p>${message} <span class="soft">${versions.filter(Boolean).join(', ')}</span></p>
${nextStep !== null && html`<p>${nextStep}</p>`}
${
  didYouMean !== null &&
  formOf(
    view,
    'near',
    [html`<input type="hidden" name="what" value="${didYouMean}">`],
    button(`Did you mean ${didYouMean}?`, { look: 'primary' }),
    { action: `${view.address}/find` },
  )
}
${login && html`<p>${loginOf(login)}</p>`}
${
  tools &&
  details(
    html`${tools.length}${hasMoreTools && ' or more'} ${tools.length === 1 ? 'tool' : 'tools'}`,
    facts(tools.slice(0, TOOLS_MAX).map((tool) => [tool.title ?? tool.name, tool.description])),
  )
}
${isFound && addForm(view, target, fields, login?.kind === 'key' || view.hasHeader ? keyFields(fields) : [])}`,
    { end: isFound ? badge('Found', 'ok') : badge('No server', 'bad') },
  );
}

function keyFields({ header }: AddFields): Field[] {
  return [
    { name: 'header', label: 'Header of the key', value: header, attributes: html`maxlength="256"` },
    {
      name: 'key',
      label: 'Key or token (you can enter it later)',
      type: 'password',
      attributes: html`autocomplete="off" maxlength="8000"`,
    },
  ];
}

function loginOf({ kind, header, host }: NonNullable<Probed['login']>): string {
  if (kind === 'none') return 'It needs no login.';
  if (kind === 'key') return `It wants a key or token, most often in the header ${header}.`;
  return host === undefined ? 'It wants a login.' : `It wants a login at ${host}: you log in after you have added it.`;
}

function listedSection(view: AddView, { name, target }: ListedServer, at: number): Html {
  const heading = `server-${at}`;
  const { command } = target;
  const place = view.added.get(`${at}`);
  if (place !== undefined) {
    const [path, label] =
      command === undefined
        ? [`ui/add/${place}/tools`, 'Choose its tools']
        : [`ui/c/${place}`, 'Start it on your machine'];
    return card(heading, name, html`<p>${buttonLink(view.root + path, label)}</p>`, { end: badge('Added', 'ok') });
  }
  return card(
    heading,
    name,
    html`${target.mcpUrl !== undefined && html`<p><code>${target.mcpUrl}</code></p>`}
${command !== undefined && html`<p>It runs on your machine. Add it: the next page has the command that starts it there.</p>${snippet(`command-${at}`, 'Command', command)}`}
${addForm(view, target, { ...view.fields, id: idOf(name), name }, view.hasHeader ? keyFields(view.fields) : [], at)}`,
  );
}

function addForm(view: AddView, target: AddTarget, fields: AddFields, more: Field[], at?: number): Html {
  const { what, namespaces, isFirst } = view;
  const form = `create${at ?? ''}`;
  const added = [...view.added].map(([number, place]) => ['added', `${number} ${place}`] as const);
  const sent = [...Object.entries({ what, ...target, ...(at !== undefined && { at: `${at}` }) }), ...added];
  const hidden = sent.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`);
  const field = (name: 'id' | 'name', label: string): Field => {
    return { name, label, value: fields[name], attributes: html`required maxlength="255"` };
  };
  const hint = `Or a namespace of one of your organizations: ${namespaces.join(', ')}`;
  const namespace = isFirst
    ? newNamespaceFields(view, fields.namespace, namespaces.length > 0 ? hint : undefined)
    : [
        {
          name: 'namespace',
          label: 'Namespace',
          value: fields.namespace,
          options: namespaces.map((name) => [name, name] as const),
        },
      ];
  const end = button('Add', { look: 'primary' });
  const shown = [
    html`${hidden}`,
    field('name', 'Name'),
    field('id', 'Id, a part of its address'),
    ...namespace,
    ...more,
  ];
  return formOf(view, form, shown, end, { action: `${view.address}/create` });
}

export function newNamespaceFields({ rejected }: FormsView, value: string, hint?: string): (Field | Html)[] {
  const attributes = html`required maxlength="255"`;
  return [
    html`<details${rejected?.field === 'namespace' && html` open`}><summary>Your namespace will be <strong>${value}</strong>. Change</summary>`,
    { name: 'namespace', label: 'Your namespace', value, attributes, hint },
    html`</details>`,
  ];
}

export function idOf(name: string): string {
  const words = name.toLowerCase().replace(/[^a-z0-9]+/g, '-');
  return words.slice(0, 60).replace(/^-|-$/g, '') || 'server';
}
