/**
 * `/ui/add`: adds a server. `?what=` fills the field, and `&header=` the name of the header of a key. The field accepts
 * the address of an MCP server, a name of the registry, or an mcp.json. `find` probes it and shows the result; for an
 * mcp.json, it only lists the servers. `create` adds the connection to a namespace of the person, claims the first one
 * if necessary, and redirects to the setup page if the server requires authorization or values, then to the steps of
 * `add-steps.controller.ts`. If several servers are listed, it renders the list again, whose forms name the added ones:
 * the list is too long for an address. A rejected form keeps the entered values except keys; a problem of the id or
 * namespace is shown next to the field.
 */
import { Controller, Get, Post } from '@nestjs/common';
import {
  Accounts,
  checkedBody,
  Connections,
  CurrentPage,
  DomainError,
  Env,
  Form,
  FramedPage,
  InvalidInputError,
  isObject,
  Namespaces,
  OwnNamespacesService,
  Page,
  Redirect,
  respondToForm,
  SetConnectionDto,
  setupOf,
  type PageRequest,
  type RejectedForm,
  type SessionCaller,
} from '../../../extension.js';
import { addPage, idOf, type AddTarget, type AddView, type ListedServer } from './add.page.js';
import type { Connection } from './add-steps.page.js';

/** A command that starts a local server, with the package or the file that it names. */
const COMMAND = /^(?:npx|bunx|uvx|docker|node|python3?|deno)\s+(?:run\s+)?(?:-\S+\s+)*([^-\s]\S*)/;

/** An address without `https://`; the first part of a name in the catalogue has no dot. */
const HOST = /^[\w-]+(?:\.[\w-]+)+(?::\d+)?(?:\/|$)/;

/** Maximum length of a stored command. */
const COMMAND_CHARS_MAX = 8_000;

/** Maximum length of a value that the address of the page prefills. */
const QUERY_CHARS_MAX = 4_000;

/** Maximum number of listed servers of an mcp.json. */
const LISTED_MAX = 50;

@Controller('ui/add')
export class AddController {
  constructor(
    private readonly env: Env,
    private readonly accounts: Accounts,
    private readonly connections: Connections,
    private readonly namespaces: Namespaces,
    private readonly ownNamespacesService: OwnNamespacesService,
  ) {}

  @Get()
  @Page('connections:write')
  show(@CurrentPage() page: PageRequest): Promise<FramedPage> {
    for (const name of ['what', 'header']) {
      const value = page.query[name];
      if (typeof value === 'string') page.form.set(name, value.slice(0, QUERY_CHARS_MAX));
    }
    return this.render(page);
  }

  @Post('find')
  @Form('connections:write')
  find(@CurrentPage() page: PageRequest) {
    const work = async () => this.render(page, await this.findServers(page.form, page.person));
    return respondToForm('find', page.form, work, (rejected) => this.render(page, null, rejected));
  }

  @Post('create')
  @Form('connections:write')
  create(@CurrentPage() page: PageRequest) {
    const { form, person } = page;
    const work = async () => {
      const { namespace, connection } = await this.add(form, person);
      const place = `${namespace}/${encodeURIComponent(connection.connectionId)}`;
      const found = form.has('at') ? await this.findServers(form, person) : null;
      if (found && 'listed' in found && found.listed.length > 1) {
        form.append('added', `${form.get('at')} ${place}`);
        return this.render(page, found);
      }
      if (connection.transport === 'uplink') return new Redirect(`ui/c/${place}?done=added`);
      const steps = `ui/add/${place}/tools`;
      return new Redirect(setupOf(this.env, '', connection, steps) ?? steps);
    };
    // The found server remains on the page. The form has no row: its field `id` is the id of the connection.
    return respondToForm(`create${form.get('at') ?? ''}`, form, work, async (rejected) =>
      this.render(page, await this.findServers(form, person).catch(() => null), { ...rejected, id: '' }),
    );
  }

  private async findServers(form: URLSearchParams, person: SessionCaller): Promise<AddView['found']> {
    let text = (form.get('what') ?? '').trim();
    if (text.startsWith('{')) return { listed: listedIn(text) };
    const [, name] = COMMAND.exec(text) ?? [];
    if (name !== undefined) {
      return { listed: [{ name, target: { transport: 'uplink', command: text } }] };
    }
    if (HOST.test(text)) {
      text = `https://${text}`;
      form.set('what', text);
    }
    const target = /^[a-z]+:/i.test(text) ? { mcpUrl: text } : { server: text };
    return { target, probed: await this.connections.probe(person, target) };
  }

  private async add(
    form: URLSearchParams,
    person: SessionCaller,
  ): Promise<{ namespace: string; connection: Connection }> {
    const text = (name: string) => (form.get(name) ?? '').trim();
    const toMember = (name: string) => (text(name) === '' ? {} : { [name]: text(name) });
    const headers = {
      ...(text('headers') === '' ? {} : parseObject(text('headers'))),
      ...(text('key') === '' ? {} : { [text('header')]: text('key') }),
    };
    const body = await checkedBody(SetConnectionDto, {
      ...toMember('mcpUrl'),
      ...toMember('server'),
      ...toMember('transport'),
      ...toMember('name'),
      ...(Object.keys(headers).length > 0 && { headers }),
    });
    // Claims a free name; rejects that of another account.
    const { name } = await this.namespaces.claim(person, text('namespace')).catch(refusedAt('namespace'));
    const command = text('command').slice(0, COMMAND_CHARS_MAX);
    const connection = await this.connections
      .create(person, name, body, { id: text('id'), command: command || undefined })
      .catch(refusedAt('id'));
    return { namespace: name, connection };
  }

  private async render(
    { person, form }: PageRequest,
    found: AddView['found'] = null,
    rejected?: RejectedForm,
  ): Promise<FramedPage> {
    const [ownNames, usable] = await Promise.all([
      this.ownNamespacesService.namesOf(person),
      this.ownNamespacesService.usableBy(person),
    ]);
    const probed = found && 'probed' in found ? found.probed : null;
    const name = probed?.title ?? probed?.name ?? (probed ? new URL(form.get('what')?.trim() ?? '').hostname : '');
    const namespace = ownNames.at(-1) ?? this.ownNamespacesService.proposalFor(person);
    const fields = {
      name: name.slice(0, 255),
      id: probed ? await this.freeIdIn(person, namespace, idOf(name)) : '',
      namespace,
      header: form.get('header') ?? probed?.login?.header ?? '',
    };
    const added = new Map(form.getAll('added').map((text) => text.split(' ', 2) as [string, string]));
    const base = { added, what: form.get('what') ?? '', hasHeader: form.has('header'), rejected, found, fields };
    const view = { ...base, namespaces: usable, isFirst: ownNames.length === 0 };
    return new FramedPage((token, root) => addPage({ ...view, token, root, address: `${root}ui/add` }));
  }

  /** Returns the id, with a number if another connection has it. */
  private async freeIdIn(person: SessionCaller, namespace: string, id: string): Promise<string> {
    for (let count = 1; count < 20; count += 1) {
      const name = count === 1 ? id : `${id}-${count}`;
      if (!(await this.accounts.may(person, 'discover', { kind: 'connection', namespace, name }))) return name;
    }
    return id;
  }
}

/** Rethrows a rejection with its field, next to which it is shown; for an id, only the rejection of one in use. */
function refusedAt(field: 'id' | 'namespace'): (error: unknown) => never {
  return (error) => {
    const isOfField = error instanceof DomainError && (field === 'namespace' || error.kind === 'conflict');
    throw isOfField ? error.atField(field) : error;
  };
}

function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return value;
  } catch {
    // Reported by the error below.
  }
  throw new InvalidInputError('The mcp.json is incomplete. Paste it from the first brace to the last.');
}

/** Quotes a word for a shell. */
function quoteWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** Returns the servers of an mcp.json, in any of the forms that clients use. */
export function listedIn(text: string): ListedServer[] {
  const file = parseObject(text);
  const servers = file.mcpServers ?? file.servers ?? file.context_servers ?? file;
  const listed = Object.entries(isObject(servers) ? servers : {}).flatMap(([name, entry]): ListedServer[] => {
    if (!isObject(entry)) return [];
    const { url, serverUrl, httpUrl, headers, command, args, env } = entry;
    const mcpUrl = [url, serverUrl, httpUrl].find((value): value is string => typeof value === 'string');
    const sent: AddTarget = isObject(headers) ? { headers: JSON.stringify(headers) } : {};
    if (mcpUrl !== undefined) return [{ name, target: { mcpUrl, ...sent } }];
    if (typeof command !== 'string') return [];
    const variables = Object.entries(isObject(env) ? env : {}).map((pair) => pair.join('='));
    const start = variables.length > 0 ? ['env', ...variables, command] : [command];
    const words = start.concat(Array.isArray(args) ? args : []);
    return [{ name, target: { transport: 'uplink', command: words.map(String).map(quoteWord).join(' ') } }];
  });
  if (listed.length === 0) throw new InvalidInputError('This mcp.json names no server.');
  return listed.slice(0, LISTED_MAX);
}
