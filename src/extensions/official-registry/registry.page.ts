import {
  badge,
  button,
  buttonLink,
  details,
  empty,
  facts,
  formOf,
  html,
  notice,
  search,
  snippet,
  who,
  type Framed,
  type Html,
} from '../../extension.js';
import type { NeededValue, RegistryServer, Way } from './registry-server.js';
import type { RegistryPage } from './registry.service.js';

interface RegistryView {
  token: Html;
  root: string;
  host: string;
  q: string;
  cursor: string | null;
  /** Null if the registry is unavailable. */
  list: RegistryPage | null;
}

export function registryPage(view: RegistryView): Framed {
  const { host, q, cursor, list } = view;
  const hrefOf = (next?: string) => {
    const query = new URLSearchParams({ ...(q !== '' && { q }), ...(next !== undefined && { cursor: next }) });
    return `registry${query.size > 0 ? `?${query.toString()}` : ''}`;
  };
  const { servers = [], nextCursor = null } = list ?? {};
  const first = cursor !== null && buttonLink(hrefOf(), 'First page', { look: 'small' });
  const next = nextCursor !== null && buttonLink(hrefOf(nextCursor), 'Next', { look: 'small' });
  return {
    title: 'Official registry',
    crumbs: [['Catalogue', 'ui/catalogue'], ['Official registry']],
    head: {
      lead: html`Servers that the MCP registry at <code>${host}</code> lists. Anyone can publish there: add only servers that you trust.`,
      actions: buttonLink('add', 'Add by address'),
    },
    body: html`<section class="card">${search('Find by name', q)}${q !== '' && html`<p class="soft"><a href="registry">All servers</a></p>`}</section>
${list === null && notice(html`The registry at ${host} is unavailable. Try again later, or add a server by its address.`, 'bad')}
${list !== null && servers.length === 0 && html`<section class="card">${empty('No servers', 'The registry searches names only. Try another word, or a part of a name.')}</section>`}
<div class="cards">${servers.map((server, at) => serverCard(view, server, at))}</div>
${(first || next) && html`<nav class="pages" aria-label="Pages of the registry">${first || html`<span></span>`}${next}</nav>`}`,
  };
}

function serverCard(view: RegistryView, server: RegistryServer, at: number): Html {
  const { name, title, description, version, isDeprecated, page, ways } = server;
  const remotes = ways.filter(({ kind }) => kind === 'remote');
  const state = isDeprecated
    ? badge('Deprecated', 'held')
    : remotes.length > 0
      ? badge('By URL', 'ok')
      : ways.length > 0
        ? badge('On your machine', 'wait')
        : badge('Not available', 'off');
  const heading = `server-${at}`;
  const [way, ...otherWays] = [...remotes, ...ways.filter(({ kind }) => kind === 'command')];
  return html`<section class="card" aria-labelledby="${heading}"><h2 class="hidden" id="${heading}">${title}</h2>
<div class="line">${who(title, html`${name}${version !== '' && ` · ${version}`}`)}<span class="end">${state}</span></div>
<p>${description}</p>
${way ? wayPart(view, server, way, `${at}-0`) : html`<p class="soft">Slipway cannot connect to it: the registry names neither a URL nor a package that a command starts.</p>`}
${otherWays.length > 0 && details(otherWays.length === 1 ? 'Another way' : `${otherWays.length} other ways`, html`${otherWays.map((other, i) => wayPart(view, server, other, `${at}-${i + 1}`))}`)}
${page !== null && html`<p><a href="${page}" rel="noreferrer nofollow">Source or website</a></p>`}</section>`;
}

function wayPart({ token, root }: RegistryView, server: RegistryServer, way: Way, id: string): Html {
  const address = `${root}ui/add`;
  const sendAs = (fields: Record<string, string>) => {
    const hidden = Object.entries(fields).map(
      ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
    );
    return formOf({ token, address }, 'find', hidden, button('Add', { look: 'small', about: `Add: ${server.title}` }));
  };
  // The name in the mcp.json is the title on the page.
  const configOf = (config: object) => JSON.stringify({ mcpServers: { [server.title]: config } });
  if (way.kind === 'command') {
    const { command, args, env } = way.config;
    const words = [...Object.entries(env).map((pair) => pair.join('=')), command, ...args].join(' ');
    return html`<p>It runs on your machine, as an uplink. Adding it shows the command that starts it there.</p>
${snippet(`command-${id}`, 'Command', words)}
${neededPart(way.variables, 'Environment variables')}
${sendAs({ what: configOf(way.config) })}`;
  }
  const { url, variables, headers, fixedHeaders } = way;
  const needed = headers.find(({ isRequired }) => isRequired) ?? headers[0];
  const header = needed && { header: needed.name };
  const target = Object.keys(fixedHeaders).length > 0 ? configOf({ url, headers: fixedHeaders }) : url;
  return html`<p><code>${url}</code></p>
${variables.length === 0 && headers.length === 0 && html`<p class="soft">It needs no values that the registry knows of. It can want a login.</p>`}
${neededPart(variables, 'Replace in the URL')}
${neededPart(headers, 'Headers')}
${
  variables.length > 0
    ? buttonLink(`add?${new URLSearchParams({ what: target, ...header }).toString()}`, 'Enter the URL', {
        look: 'small',
        about: `Enter the URL: ${server.title}`,
      })
    : sendAs({ what: target, ...header })
}`;
}

function neededPart(values: readonly NeededValue[], label: string): Html | false {
  if (values.length === 0) return false;
  return html`<h3>${label}</h3>${facts(
    values.map(({ name, description, isRequired }) => [
      html`<code>${name}</code>`,
      html`${description} <span class="soft">${isRequired ? 'required' : 'optional'}</span>`,
    ]),
  )}`;
}
