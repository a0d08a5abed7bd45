/** The page of `/ui/add`: one field, then what was found there, with a form that makes the connection. */
import type { Framed } from '../../../platform/pages/frame.js';
import { html, type Html } from '../../../platform/pages/html.js';
import type { ProbeService } from '../../connections/probe/probe.service.js';

export type Probed = Awaited<ReturnType<ProbeService['probe']>>;

/** Where a connection leads, as the fields of its form. */
export type AddTarget = Partial<Record<'mcpUrl' | 'server' | 'transport' | 'headers', string>>;

/** A server of a pasted mcp.json. */
export interface ListedServer {
  name: string;
  target: AddTarget;
  /** The command line of a server that runs on the machine of its user. */
  command?: string;
}

/** Fields of the connection, as they were typed or are proposed. */
export interface AddFields {
  id: string;
  name: string;
  namespace: string;
  header: string;
}

/** A field whose fault stands beside it. */
export type FaultyField = 'id' | 'namespace';

/** Content of the page. */
export interface AddView {
  token: Html;
  /** The way to the root of the service. */
  root: string;
  /** The text of the field. */
  what: string;
  fault: string | null;
  /** The field that the fault is of; undefined: the page. */
  field?: FaultyField;
  /** The number of the listed server whose form was sent. */
  at: string | null;
  /** Result of the field; null before it was sent. */
  found: { probed: Probed; target: AddTarget } | { listed: ListedServer[] } | null;
  fields: AddFields;
  /** Namespaces where the person may add. */
  namespaces: string[];
  /** The person has no namespace yet: the first one is made on the way. */
  isFirst: boolean;
}

/** Tools that are shown; the rest is counted. */
const TOOLS_MAX = 200;

export function addPage(view: AddView): Framed {
  const { token, root, what: text, fault, found: result } = view;
  return {
    title: 'Add a server',
    body: html`${fault !== null && (view.field === undefined || !result) && html`<p role="alert" class="fault">${fault}</p>`}
<form method="post" action="${root}ui/add/find">${token}<p><label for="what">Address of the MCP server, or a name in the catalogue, or paste an mcp.json</label>
<textarea id="what" name="what" rows="${text.includes('\n') ? 8 : 2}" required maxlength="20000" spellcheck="false">\n${text}</textarea></p>
<p><button type="submit">Find</button></p></form>
${fault !== null && /^[^{:]+$/.test(text) && html`<p><a href="${root}ui/catalogue?${new URLSearchParams({ q: text.slice(0, 500) }).toString()}">Look for it in the catalogue</a></p>`}
${result && 'probed' in result && foundSection(view, result)}
${result && 'listed' in result && result.listed.map((server, at) => listedSection(view, server, at))}`,
  };
}

function foundSection(view: AddView, { probed, target }: { probed: Probed; target: AddTarget }): Html {
  const { token, root, fields } = view;
  const { title, name, version, protocolVersion, message, nextStep, login, tools, hasMoreTools, didYouMean, state } =
    probed;
  const isFound = state !== 'error';
  const facts = [version !== null && `version ${version}`, protocolVersion !== null && `MCP ${protocolVersion}`].filter(
    Boolean,
  );
  return html`<section aria-labelledby="found"><h2 id="found">${title ?? name ?? 'Not found'}</h2>
<p>${isFound ? '✓' : '✕'} ${message} ${facts.length > 0 && html`<span class="soft">${facts.join(', ')}</span>`}</p>
${nextStep !== null && html`<p>${nextStep}</p>`}
${
  didYouMean !== null &&
  html`<form method="post" action="${root}ui/add/find">${token}<input type="hidden" name="what" value="${didYouMean}">
<button type="submit">Did you mean ${didYouMean}?</button></form>`
}
${login && html`<p>${loginOf(login)}</p>`}
${
  tools &&
  html`<details><summary>${tools.length}${hasMoreTools && ' or more'} ${tools.length === 1 ? 'tool' : 'tools'}</summary><dl>${tools
    .slice(0, TOOLS_MAX)
    .map((tool) => html`<div><dt>${tool.title ?? tool.name}</dt><dd>${tool.description}</dd></div>`)}</dl></details>`
}
${
  isFound &&
  addForm(
    view,
    target,
    fields,
    login?.kind === 'key' &&
      html`<p><label for="header">Header of the key</label><input id="header" name="header" maxlength="256" value="${fields.header}"></p>
<p><label for="key">Key or token (you can enter it later)</label>
<input id="key" name="key" type="password" autocomplete="off" maxlength="8000"></p>`,
  )
}</section>`;
}

function loginOf({ kind, header, host }: NonNullable<Probed['login']>): string {
  if (kind === 'none') return 'It needs no login.';
  if (kind === 'key') return `It wants a key or token, most often in the header ${header}.`;
  return host === undefined ? 'It wants a login.' : `It wants a login at ${host}: you log in after you have added it.`;
}

function listedSection(view: AddView, { name, target, command }: ListedServer, at: number): Html {
  const heading = `server-${at}`;
  return html`<section aria-labelledby="${heading}"><h2 id="${heading}">${name}</h2>
${target.mcpUrl !== undefined && html`<p><code>${target.mcpUrl}</code></p>`}
${command !== undefined && html`<p>It runs on your machine. Add it, then pair it by the command on its page, which ends with:</p><pre>${command}</pre>`}
${addForm(view, target, view.at === `${at}` ? view.fields : { ...view.fields, id: idOf(name), name }, null, at)}</section>`;
}

/** The form that makes the connection. @param at the number of a listed server */
function addForm(view: AddView, target: AddTarget, fields: AddFields, more: Html | false | null, at?: number): Html {
  const { token, root, what: text, namespaces } = view;
  const suffix = at === undefined ? '' : `-${at}`;
  const isSent = at === undefined || view.at === `${at}`;
  const hidden = Object.entries({ what: text, ...target, ...(at !== undefined && { at: `${at}` }) }).map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  );
  const faultOf = (name: string) => isSent && view.field === name && view.fault;
  const field = (name: 'id' | 'name' | 'namespace', label: string) => {
    const fault = faultOf(name);
    return html`<p><label for="${name}${suffix}">${label}</label>
${fault && html`<span id="${name}${suffix}-fault" class="fault" role="alert">${fault}</span>`}
<input id="${name}${suffix}" name="${name}" required maxlength="255" value="${fields[name]}"${fault && html` aria-invalid="true" aria-describedby="${name}${suffix}-fault" autofocus`}></p>`;
  };
  const options = namespaces.map(
    (name) => html`<option value="${name}"${name === fields.namespace && html` selected`}>${name}</option>`,
  );
  const namespace = view.isFirst
    ? html`<details${faultOf('namespace') && html` open`}><summary>Your namespace will be <strong>${fields.namespace}</strong>. Change</summary>
${field('namespace', 'Your namespace')}
${namespaces.length > 0 && html`<p class="hint">Or a namespace of one of your organizations: ${namespaces.join(', ')}</p>`}</details>`
    : html`<p><label for="namespace${suffix}">Namespace</label>
${faultOf('namespace') && html`<span class="fault" role="alert">${view.fault}</span>`}
<select id="namespace${suffix}" name="namespace">${options}</select></p>`;
  return html`<form method="post" action="${root}ui/add/create">${token}${hidden}
${field('name', 'Name')}${field('id', 'Id, a part of its address')}${namespace}${more}
<p><button type="submit">Add</button></p></form>`;
}

/** An id of a connection that is made of a name. */
export function idOf(name: string): string {
  const words = name.toLowerCase().replace(/[^a-z0-9]+/g, '-');
  return words.slice(0, 60).replace(/^-|-$/g, '') || 'server';
}
