/**
 * The pages to which a browser is led that opens an MCP address: `/ui/n/{namespace}` and `/ui/s/{slug}`; that of a connection has
 * a controller of its own. Every signed-in person may ask; the services decide as for REST. What does not exist and what the person may not
 * know of are one page.
 *
 * The forms of servers post to `/ui/s/{slug}`, from the catalogue too: `do=set-up` makes a connection to it in a namespace of the
 * person, `do=ask` asks for access with the sentence `text`.
 */
import { Controller, Get, Param, Post, Query, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Env } from '../../config/env.js';
import { ConflictError, DomainError, InvalidInputError, statusOf } from '../../platform/errors/domain-error.js';
import { noticeOf, sendFramed, type Framed } from '../../platform/pages/frame.js';
import type { Html } from '../../platform/pages/html.js';
import { redirectTo, rootFrom } from '../../platform/pages/page.js';
import { CurrentPerson, Page, SentForm } from '../auth/access.decorator.js';
import { AccessService } from '../auth/access.service.js';
import type { SessionCaller } from '../auth/access.types.js';
import { ConnectionsService } from '../connections/connections.service.js';
import { listedTools } from '../connections/core/connections.access.js';
import { AccessRequestsService } from '../grants/access-requests.service.js';
import { NamespacesService } from '../namespaces/namespaces.service.js';
import { ServerNotFoundError } from '../servers/servers.errors.js';
import { formatQualifiedName, parseQualifiedName } from '../servers/server.types.js';
import { ServersService } from '../servers/servers.service.js';
import { namespacePage, nothingHere, serverPage } from './addresses.page.js';
import { ConnectService } from './clients/connect.service.js';
import { OwnNamespacesService } from './own-namespaces.service.js';
import { ServerViewsService } from './server-views.service.js';

/** Sentences for the word in the address after a form. */
const DONE: Record<string, string> = {
  asked: 'You asked for access. This page shows the decision.',
};

type Content = (token: Html) => Framed;

@Controller('ui')
export class AddressesController {
  constructor(
    private readonly env: Env,
    private readonly accessService: AccessService,
    private readonly connectionsService: ConnectionsService,
    private readonly namespacesService: NamespacesService,
    private readonly serversService: ServersService,
    private readonly serverViewsService: ServerViewsService,
    private readonly accessRequestsService: AccessRequestsService,
    private readonly connectService: ConnectService,
    private readonly ownNamespacesService: OwnNamespacesService,
  ) {}

  @Get('n/:namespace')
  @Page('connections:read')
  showNamespace(
    @Param('namespace') name: string,
    @Query('client') client: unknown,
    @CurrentPerson() person: SessionCaller,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    return this.show(person, request, response, async () => {
      const { caller } = await this.opened(person, { owner: name });
      return () =>
        namespacePage(name, caller.grant, this.connectService.part({ kind: 'namespace', namespace: name }, client));
    });
  }

  @Get('s/:slug')
  @Page('servers:read')
  showServer(
    @Param('slug') slug: string,
    @Query('client') client: unknown,
    @CurrentPerson() person: SessionCaller,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    return this.show(person, request, response, () => this.serverContent(slug, client, person));
  }

  @Post('s/:slug')
  @Page('servers:write')
  async act(
    @Param('slug') slug: string,
    @SentForm() form: URLSearchParams,
    @CurrentPerson() person: SessionCaller,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const text = (form.get('text') ?? '').trim();
    try {
      const server = await this.serversService.findBySlug(slug, person);
      if (!server) throw new ServerNotFoundError();
      if (form.get('do') === 'ask') {
        if (!/^[^\p{Cc}\p{Cs}]{1,500}$/u.test(text)) {
          throw new InvalidInputError('Say in 1 to 500 characters, on one line, what you need it for.');
        }
        await this.accessRequestsService.ask(person, server, text);
        return redirectTo(response, `./${encodeURIComponent(slug)}?done=asked`);
      }
      await this.serversService.requireCall(person, server);
      const { namespace, connectionId } = await this.setUp(person, formatQualifiedName(server));
      redirectTo(response, `../c/${namespace}/${encodeURIComponent(connectionId)}?done=set-up`);
    } catch (error) {
      if (!(error instanceof DomainError) || error.kind === 'not_found') {
        return this.show(person, request, response, () => Promise.reject(error));
      }
      const fault = { fault: error.message, text };
      const content = await this.serverContent(slug, undefined, person, fault);
      sendFramed(this.env, request, response, person.accountName, content, statusOf[error.kind]);
    }
  }

  /** Answers with a page, which is the one of {@link nothingHere} where there is nothing to be seen. */
  private async show(
    { accountName }: SessionCaller,
    request: Request,
    response: Response,
    make: () => Promise<Content>,
  ): Promise<void> {
    const { done } = request.query;
    const notice = noticeOf(done, DONE);
    const content = await make().catch((error: unknown) => {
      if (error instanceof DomainError && error.kind === 'not_found') return null;
      throw error;
    });
    const pageContent: Content = content
      ? (token) => ({ ...content(token), notice })
      : () => nothingHere(rootFrom(request.path));
    sendFramed(this.env, request, response, accountName, pageContent, content ? 200 : 404);
  }

  /** The namespace, and the caller with the grant that opens it, as REST decides for the read of a connection. */
  private async opened(person: SessionCaller, target: { owner: string }) {
    const rule = { scope: 'connections:read', ...listedTools } as const;
    const { caller, namespace } = await this.accessService.authorize(person, rule, target);
    if (!namespace) throw new Error('The rule has an owner');
    return { caller, namespace };
  }

  private async serverContent(
    slug: string,
    client: unknown,
    person: SessionCaller,
    refused: { fault?: string; text?: string } = {},
  ): Promise<Content> {
    const server = await this.serversService.findBySlug(slug, person);
    if (!server) throw new ServerNotFoundError();
    const [view] = await this.serverViewsService.of(person, [formatQualifiedName(server)]);
    if (!view) throw new ServerNotFoundError();
    const connect = this.connectService.part({ kind: 'server', slug: view.slug }, client);
    return (token) => serverPage(view, { token, connect, ...refused });
  }

  /** A connection of the person to a server, named like it, in the oldest namespace of the account, which may be a new one. */
  private async setUp(person: SessionCaller, server: string): Promise<{ namespace: string; connectionId: string }> {
    const namespace = await this.ownNamespacesService.first(person);
    const owner = await this.namespacesService.find(namespace);
    if (!owner) throw new ServerNotFoundError();
    const { namespace: first, name } = parseQualifiedName(server);
    const target = { id: owner.id, name: namespace };
    try {
      await this.connectionsService.set(target, name || first, { server }, person);
      return { namespace, connectionId: name || first };
    } catch (error) {
      // Another connection has the name.
      if (!(error instanceof ConflictError)) throw error;
      return {
        namespace,
        connectionId: (await this.connectionsService.create(target, { server }, person)).connectionId,
      };
    }
  }
}
