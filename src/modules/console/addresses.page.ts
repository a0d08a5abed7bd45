/** The pages of the addresses: the connections of a namespace, a server. */
import { formOf, withReason, type FormsView } from '../../platform/pages/forms.js';
import type { Framed } from '../../platform/pages/frame.js';
import { html, type Html } from '../../platform/pages/html.js';
import { timeOf } from '../../platform/pages/times.js';
import type { GrantRef } from '../auth/access.types.js';
import type { AccessRequestsService } from '../grants/access-requests.service.js';
import type { ServersService } from '../servers/servers.service.js';

export type Server = Awaited<ReturnType<ServersService['detail']>>;
export type AccessRequest = Awaited<ReturnType<AccessRequestsService['requestAccess']>>['request'];

/** Tools of a server on its page. */
const TOOLS_MAX = 200;

/** The page of all connections of a namespace. */
export function namespacePage(namespace: string, grant: GrantRef | undefined, connect: Html): Framed {
  return {
    title: namespace,
    asRequest: `/connect/${encodeURIComponent(namespace)}`,
    body: html`<section aria-labelledby="what"><h2 id="what">One address for all</h2>
<p>All connections of the namespace <code>${namespace}</code> as one MCP server. Its tools are named
<code>connection__tool</code>.</p>
<p>You may ${grant?.tools ? html`call these tools: ${grant.tools.join(', ')}` : 'call all tools'}.</p></section>
${connect}`,
  };
}

/** A server on a card or page, with the rights of the person. */
export interface ServerView {
  server: Server;
  slug: string;
  mayCall: boolean;
  /** The newest request of the account for access. */
  request: AccessRequest | undefined;
}

/** The page of a server. */
export function serverPage(view: ServerView, forms: FormsView & { connect: Html }): Framed {
  const { server } = view;
  const { tools } = server;
  return {
    title: server.displayName,
    asRequest: `/servers/${encodeURIComponent(server.qualifiedName)}`,
    body: withReason(
      forms,
      html`<section aria-labelledby="what"><h2 id="what">What it is</h2>
${factsOf(view)}
${actionsOf(view, forms)}</section>
${view.mayCall && forms.connect}
${
  tools &&
  tools.length > 0 &&
  html`<section aria-labelledby="tools"><h2 id="tools">Tools</h2><dl>${tools
    .slice(0, TOOLS_MAX)
    .map(({ name, description }) => html`<div><dt>${name}</dt><dd>${description}</dd></div>`)}</dl>
${tools.length > TOOLS_MAX && html`<p>And ${tools.length - TOOLS_MAX} more.</p>`}</section>`
}`,
    ),
  };
}

/** The description of a server, its needs, and the warnings of the scan. */
export function factsOf({ server, mayCall }: ServerView): Html {
  const { qualifiedName, description, tools, security, suspended, remote, currentReleaseId } = server;
  const warnings = security?.warnings ?? [];
  const { configSchema = {} } = server.connections[0] ?? {};
  const required = ((configSchema.required as string[] | undefined) ?? []).map((name) => {
    const { title } = (configSchema.properties as Record<string, { title?: string }> | undefined)?.[name] ?? {};
    return title ?? name;
  });
  const needs = !mayCall
    ? 'the permission of its owner'
    : required.length > 0
      ? `values from you: ${required.join(', ')}`
      : 'no values from you';
  const [by = ''] = qualifiedName.split('/');
  return html`<p>${description}</p>
<p class="soft"><code>${qualifiedName}</code>, by ${by}. It needs ${needs}.
${tools === null ? 'Its tools are not known yet.' : html`${tools.length} ${tools.length === 1 ? 'tool' : 'tools'}.`}</p>
${suspended && html`<p role="note">⊘ Suspended by the operator since ${timeOf(suspended.since)}: ${suspended.reason}</p>`}
${currentReleaseId === null ? html`<p>○ Nothing of it is published yet.</p>` : !remote && html`<p>It runs on the machine of its user, not here.</p>`}
${
  security &&
  (!security.scanPassed || warnings.length > 0) &&
  html`<details><summary>⚠ The scan warns${warnings.length > 0 && `: ${warnings.length}`}</summary><ul>${warnings.map(
    ({ message }) => html`<li>${message}</li>`,
  )}</ul></details>`
}`;
}

/** The next steps of the person, as forms below the page of the server. */
export function actionsOf({ server, mayCall, request }: ServerView, forms: FormsView): Html | false {
  if (server.suspended) return false;
  if (mayCall) {
    return (
      server.remote &&
      formOf(
        forms,
        'set-up',
        [],
        html`<p><button type="submit">Set up for me</button>
<span class="hint">Creates your own connection to it.</span></p>`,
      )
    );
  }
  const requestNote =
    request &&
    html`<p>◐ You asked for access, ${timeOf(request.createdAt)}: “${request.text}”. ${
      request.state === 'open'
        ? 'Its owner has not answered yet.'
        : request.state === 'refused'
          ? html`⊘ Refused${request.decidedAt !== null && html`, ${timeOf(request.decidedAt)}`}: “${request.answer}”`
          : 'It was granted, and has ended since.'
    }</p>`;
  if (request?.state === 'open') return requestNote ?? false;
  const field = { name: 'text', label: 'What you need it for', attributes: html`required maxlength="500"` };
  return html`${requestNote}${formOf(forms, 'ask', [field], html`<p><button type="submit">Ask for access</button></p>`)}`;
}
