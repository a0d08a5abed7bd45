import {
  badge,
  button,
  card,
  columns,
  details,
  formOf,
  html,
  table,
  tile,
  timeOf,
  withReason,
  type FormsView,
  type Framed,
  type Grants,
  type Html,
  type Servers,
} from '../../extension.js';
import { newNamespaceFields } from './add/add.page.js';

export type Server = Awaited<ReturnType<Servers['detail']>>;
export type AccessRequest = Awaited<ReturnType<Grants['listOwnRequests']>>['requests'][number];

const TOOLS_MAX = 200;

export interface ServerView {
  server: Server;
  slug: string;
  mayCall: boolean;
  request: AccessRequest | undefined;
  /** The proposed name of the first namespace; null if the person already has one. */
  newNamespace: string | null;
}

export function serverPage(view: ServerView, forms: FormsView & { connect: Html; parts?: Html[] }): Framed {
  const { server } = view;
  const { tools } = server;
  return {
    title: server.displayName,
    asRequest: `/servers/${encodeURIComponent(server.qualifiedName)}`,
    crumbs: [['Catalogue', 'ui/catalogue'], [server.qualifiedName]],
    head: {
      tile: tile(server.displayName, { look: 'large' }),
      badge: stateOf(view),
      lead: html`<code>${server.qualifiedName}</code>`,
    },
    body: withReason(
      forms,
      html`${forms.parts}${columns(
        html`${view.mayCall && server.currentReleaseId !== null && forms.connect}
${
  tools &&
  tools.length > 0 &&
  card(
    'tools',
    'Tools',
    html`${table(
      'Tools',
      [['Name'], ['What it does']],
      tools.slice(0, TOOLS_MAX).map(({ name, description }) => [html`<code>${name}</code>`, description]),
    )}
${tools.length > TOOLS_MAX && html`<p>And ${tools.length - TOOLS_MAX} more.</p>`}`,
    { count: tools.length },
  )
}`,
        card(
          'what',
          'What it is',
          html`${factsOf(view)}
${actionsOf(view, forms)}`,
        ),
      )}`,
    ),
  };
}

function requiredOf({ connections }: Server): string[] {
  const { configSchema = {} } = connections[0] ?? {};
  const properties = configSchema.properties as Record<string, { title?: string }> | undefined;
  return ((configSchema.required as string[] | undefined) ?? []).map((name) => properties?.[name]?.title ?? name);
}

export function stateOf({ server, mayCall, request }: ServerView): Html {
  if (server.suspended) return badge('Suspended', 'held');
  if (!mayCall) return request?.state === 'open' ? badge('Requested', 'wait') : badge('Restricted', 'held');
  if (server.currentReleaseId === null) return badge('Not published', 'off');
  return requiredOf(server).length > 0 ? badge('Needs values', 'wait') : badge('Ready', 'ok');
}

export function factsOf({ server, mayCall }: ServerView): Html {
  const { qualifiedName, description, tools, security, suspended, remote, currentReleaseId } = server;
  const warnings = security?.warnings ?? [];
  const required = requiredOf(server);
  const needs = !mayCall
    ? 'the permission of its owner'
    : required.length > 0
      ? `values from you: ${required.join(', ')}`
      : 'no values from you';
  return html`<p>${description}</p>
<p class="soft"><code>${qualifiedName}</code>. It needs ${needs}.
${tools === null ? 'Its tools are not known yet.' : html`${tools.length} ${tools.length === 1 ? 'tool' : 'tools'}.`}</p>
${suspended && html`<p role="note">Suspended by the operator since ${timeOf(suspended.since)}: ${suspended.reason}</p>`}
${currentReleaseId === null ? html`<p>Nothing of it is published yet.</p>` : !remote && html`<p>It runs on the machine of its user, not here.</p>`}
${
  security &&
  (!security.scanPassed || warnings.length > 0) &&
  details(
    html`${badge('The scan warns', 'wait')}${warnings.length > 0 && ` ${warnings.length}`}`,
    html`${warnings.map(({ message }) => html`<p>${message}</p>`)}`,
  )
}`;
}

export function actionsOf({ server, mayCall, request, newNamespace }: ServerView, forms: FormsView): Html | false {
  if (server.suspended) return false;
  if (mayCall) {
    const fields = newNamespace === null ? [] : newNamespaceFields(forms, newNamespace);
    return server.remote && formOf(forms, 'set-up', fields, button('Set up for me', { look: 'small' }));
  }
  const requestNote =
    request &&
    html`<p>${badge('Requested', 'wait')} You asked for access, ${timeOf(request.createdAt)}: “${request.text}”. ${
      request.state === 'open'
        ? 'Its owner has not answered yet.'
        : request.state === 'refused'
          ? html`${badge('Refused', 'bad')}${request.decidedAt !== null && html`, ${timeOf(request.decidedAt)}`}: “${request.answer}”`
          : 'It was granted, and has ended since.'
    }</p>`;
  if (request?.state === 'open') return requestNote ?? false;
  const field = { name: 'text', label: 'What you need it for', attributes: html`required maxlength="500"` };
  return html`${requestNote}${formOf(forms, 'ask', [field], button('Ask for access', { look: 'small' }))}`;
}
