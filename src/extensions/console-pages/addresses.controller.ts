/**
 * `/ui/s/{slug}`: the page of a server. A browser that opens the MCP address of the server is redirected here. Every signed-in person can open
 * the page; the services decide as for REST. Missing and hidden servers have the same page.
 *
 * Forms of servers, also shown in the catalogue: `set-up` creates a connection to the server in a namespace of the
 * person, `ask` requests access with the message `text`.
 */
import { Controller, Get, Optional, Post } from '@nestjs/common';
import {
  AccessRequiredError,
  Accounts,
  ConflictError,
  Connections,
  CurrentPage,
  Form,
  formatQualifiedName,
  FramedPage,
  Grants,
  html,
  InvalidInputError,
  noticeOf,
  OwnNamespacesService,
  Page,
  PageParts,
  parseQualifiedName,
  Redirect,
  respondToForm,
  rootFrom,
  ServerNotFoundError,
  Servers,
  type PageRequest,
  type RejectedForm,
  type SessionCaller,
} from '../../extension.js';
import { serverPage } from './addresses.page.js';
import { ConnectService } from './clients/connect.service.js';
import { ServerViewsService } from './server-views.service.js';
import { accessLinkOf, callsLink } from './target-access.page.js';

/** Messages for the words in the address after a form. */
const DONE: Record<string, string> = { asked: 'You asked for access. This page shows the decision.' };

type ServerRequest = PageRequest<{ slug: string }>;

@Controller('ui')
export class AddressesController {
  constructor(
    private readonly accounts: Accounts,
    private readonly connections: Connections,
    private readonly grants: Grants,
    private readonly servers: Servers,
    private readonly serverViewsService: ServerViewsService,
    private readonly connectService: ConnectService,
    private readonly ownNamespacesService: OwnNamespacesService,
    @Optional() private readonly pageParts?: PageParts,
  ) {}

  @Get('s/:slug')
  @Page('servers:read')
  showServer(@CurrentPage() page: ServerRequest): Promise<FramedPage> {
    return this.renderServer(page);
  }

  @Post('s/:slug/ask')
  @Form('servers:write')
  requestAccess(@CurrentPage() page: ServerRequest) {
    const { form, params, person } = page;
    const work = async () => {
      const text = (form.get('text') ?? '').trim();
      const server = await this.serverOf(page);
      if (!/^[^\p{Cc}\p{Cs}]{1,500}$/u.test(text)) {
        throw new InvalidInputError('Say in 1 to 500 characters, on one line, what you need it for.');
      }
      await this.grants.request(person, formatQualifiedName(server), text);
      return new Redirect(`ui/s/${encodeURIComponent(params.slug)}?done=asked`);
    };
    return respondToForm('ask', form, work, (rejected) => this.renderServer(page, rejected));
  }

  @Post('s/:slug/set-up')
  @Form('servers:write')
  setUp(@CurrentPage() page: ServerRequest) {
    const { form, person } = page;
    const work = async () => {
      const server = await this.serverOf(page);
      const name = formatQualifiedName(server);
      if (!(await this.servers.mayCall(person, name))) throw new AccessRequiredError(name);
      const { displayName } = await this.servers.detail(person, name);
      const place = await this.connect(person, { server: name, name: displayName }, form.get('namespace')?.trim());
      return new Redirect(place);
    };
    return respondToForm('set-up', form, work, (rejected) => this.renderServer(page, rejected));
  }

  private async serverOf({ params, person }: ServerRequest) {
    const server = await this.servers.findBySlug(person, params.slug);
    if (!server) throw new ServerNotFoundError();
    return server;
  }

  private async renderServer(page: ServerRequest, rejected?: RejectedForm): Promise<FramedPage> {
    const { query, person } = page;
    const ref = await this.serverOf(page);
    const target = { id: ref.id, name: formatQualifiedName(ref) };
    const [view] = await this.serverViewsService.viewsOf(person, [target.name]);
    if (!view) throw new ServerNotFoundError();
    const ownAddress = `${rootFrom(page.path)}ui/s/${view.slug}`;
    const parts = await this.pageParts?.find('server', { person, target, address: ownAddress });
    const name = { kind: 'server', ...parseQualifiedName(target.name) } as const;
    const access = await accessLinkOf(this.accounts, person, name);
    const isManager = await this.accounts.may(person, 'manage', name);
    return new FramedPage((token, root) => {
      const address = `${root}ui/s/${view.slug}`;
      const connect = this.connectService.part({ kind: 'server', slug: view.slug }, page, address);
      const content = serverPage(view, { token, address, connect, parts: parts?.map((part) => part(token)), rejected });
      const notice = noticeOf(query.done, DONE);
      const cookies = this.connectService.remember(page);
      return {
        ...content,
        head: { ...content.head, actions: html`${isManager && callsLink(root, target.name)}${access?.(root)}` },
        notice,
        cookies,
      };
    });
  }

  /**
   * Connects the person to a server, in the oldest namespace of the account, or in a new one.
   *
   * @returns the path of the next step; of the connection's page if it already exists
   */
  private async connect(
    person: SessionCaller,
    body: { server: string; name: string },
    first?: string,
  ): Promise<string> {
    const namespace = await this.ownNamespacesService.first(person, first);
    const { namespace: maker, name } = parseQualifiedName(body.server);
    const id = name || maker;
    const pathOf = (connectionId: string) => `${namespace}/${encodeURIComponent(connectionId)}`;
    const exists = await this.accounts.may(person, 'discover', { kind: 'connection', namespace, name: id });
    try {
      // Keeps the name of an existing connection, which might have been renamed.
      const sent = exists ? { server: body.server } : body;
      const { created } = await this.connections.set(person, `${namespace}/${id}`, sent);
      return created ? `ui/add/${pathOf(id)}/tools` : `ui/c/${pathOf(id)}?done=set-up`;
    } catch (error) {
      // Another connection has the id.
      if (!(error instanceof ConflictError)) throw error;
      return `ui/add/${pathOf((await this.connections.create(person, namespace, body)).connectionId)}/tools`;
    }
  }
}
