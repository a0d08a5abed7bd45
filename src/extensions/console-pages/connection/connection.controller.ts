/**
 * `/ui/c/{namespace}/{connectionId}`: a connection. A browser that opens its MCP address is redirected here. The page
 * has the parts that REST returns to the same account: a grantee sees the state, the ways to connect, the tools of its
 * grant and its own calls. Missing and hidden connections have the same page.
 *
 * Each form has an address under the page, with the access rule of the REST route that does the same. A rejected form
 * keeps the entered values, except those of headers. `check` redirects to `?check`, with the steps of a diagnosis,
 * which are not stored.
 */
import { Controller, Get, Optional, Post } from '@nestjs/common';
import {
  Accounts,
  Connections,
  CurrentPage,
  DomainError,
  Env,
  Form,
  FramedPage,
  InvalidInputError,
  listedTools,
  noticeOf,
  ownConnections,
  ownConnectionsOnly,
  Page,
  PageParts,
  pairCommandOf,
  Redirect,
  respondToForm,
  rootFrom,
  setupOf,
  Tools,
  type Action,
  type PageRequest,
  type RejectedForm,
} from '../../../extension.js';
import { ConnectService } from '../clients/connect.service.js';
import { changeIn } from './connection-forms.js';
import { connectionPage, DONE } from './connection.page.js';
import { toolsPart } from './connection-tools.page.js';

/** Maximum number of records loaded for *Last calls*, in which tool calls come first. */
const CALLS_MAX = 100;

type ConnectionRequest = PageRequest<{ namespace: string; connectionId: string }>;

@Controller('ui/c/:namespace/:connectionId')
export class ConnectionPageController {
  constructor(
    private readonly env: Env,
    private readonly accounts: Accounts,
    private readonly connections: Connections,
    private readonly tools: Tools,
    private readonly connectService: ConnectService,
    @Optional() private readonly pageParts?: PageParts,
  ) {}

  @Get()
  @Page('connections:read', listedTools)
  show(@CurrentPage() page: ConnectionRequest): Promise<FramedPage> {
    return this.render(page);
  }

  @Post('check')
  @Form('connections:read', ownConnections)
  check(@CurrentPage() page: ConnectionRequest) {
    return this.respond(page, 'check', async () => new Redirect(`${addressOf(page)}?check`));
  }

  @Post('settings/:setting')
  @Form('connections:write', ownConnections)
  change(@CurrentPage() page: PageRequest<ConnectionRequest['params'] & { setting: string }>) {
    const { setting } = page.params;
    return this.respond(page, `settings/${setting}`, async ({ form, person }) => {
      await this.connections.set(person, nameOf(page), changeIn(setting, form));
      return 'changed';
    });
  }

  @Post('delete')
  @Form('connections:write', ownConnectionsOnly)
  delete(@CurrentPage() page: ConnectionRequest) {
    return this.respond(page, 'delete', async ({ params: { connectionId }, form, person }) => {
      if (form.get('typed')?.trim() !== connectionId) {
        throw new InvalidInputError('The typed id does not match');
      }
      await this.connections.delete(person, nameOf(page));
      return new Redirect('ui/?done=deleted');
    });
  }

  /** Runs the work of a form. @param work returns a key of {@link DONE}, whose message the page then shows */
  private respond<Request extends ConnectionRequest>(
    page: Request,
    name: string,
    work: (page: Request) => Promise<keyof typeof DONE | Redirect>,
  ): Promise<FramedPage | Redirect> {
    const { person, form } = page;
    const run = async () => {
      // A form never creates a connection.
      await this.connections.find(person, nameOf(page));
      const outcome = await work(page);
      return typeof outcome === 'string' ? new Redirect(`${addressOf(page)}?done=${outcome}`) : outcome;
    };
    return respondToForm(name, form, run, (rejected) => this.render(page, rejected));
  }

  private async render(page: ConnectionRequest, rejected?: RejectedForm): Promise<FramedPage> {
    const { namespace, params, query } = page;
    const { connectionId } = params;
    const { tools, withheld, ...view } = await this.viewOf(page);
    const endpoint = { kind: 'connection', namespace: namespace.name, name: connectionId } as const;
    const row = await this.accounts.target(page.person, 'discover', endpoint);
    const target = row && { id: row.id, name: nameOf(page) };
    const slot = { person: page.person, target, address: rootFrom(page.path) + addressOf(page) };
    const parts = await this.pageParts?.find('connection', slot);
    return new FramedPage((token, root) => {
      const address = root + addressOf(page);
      const content = connectionPage({
        ...{ ...view, rejected, token, root, address },
        setupUrl: setupOf(this.env, root, view.connection, addressOf(page)),
        parts: parts?.map((part) => part(token)),
        connect: this.connectService.part(endpoint, page, address),
        tools: toolsPart(address, { tools, withheld }, query),
      });
      return { ...content, notice: noticeOf(query.done, DONE), cookies: this.connectService.remember(page) };
    });
  }

  private async viewOf(page: ConnectionRequest) {
    const { namespace, params, query, person, form } = page;
    const { connectionId } = params;
    const name = nameOf(page);
    const isAllowed = (action: Action) =>
      this.accounts.may(person, action, { kind: 'connection', namespace: namespace.name, name: connectionId });
    const connection = await this.connections.find(person, name);
    const ask = connection.status.state === 'connected' || query.ask !== undefined;
    const listing = await this.tools.list(person, name, { ask });
    const withheld = person.grant?.level === 'call' ? [] : listing.withheld;
    const mayRead = await isAllowed('read');
    const mayAdminister = await isAllowed('administer');
    // The page leaves out a log that cannot be read now.
    const calls = await this.connections.calls(person, name, { limit: CALLS_MAX }).catch((error: unknown) => {
      if (error instanceof DomainError) return null;
      throw error;
    });
    const changes = await isAllowed('manage');
    const isUnpaired = connection.transport === 'uplink' && connection.status.state !== 'connected';
    const place = { namespace: namespace.name, connectionId };
    const command = changes
      ? pairCommandOf(this.env.baseUrl, place, await this.connections.command(person, name))
      : null;
    const isByUrl = connection.mcpUrl !== null && !connection.mcpUrl.startsWith(`${this.env.baseUrl}/run/`);
    return {
      namespace: namespace.name,
      connection,
      grant: person.grant,
      tools: listing.tools,
      withheld,
      uplink: isUnpaired ? { command, isLive: !('settings' in query || 'check' in query || form.size > 0) } : null,
      mayRead,
      diagnosis: mayRead && query.check !== undefined ? await this.connections.diagnose(person, name) : undefined,
      calls,
      changes: changes
        ? { canMove: mayAdminister && isByUrl && connection.status.lastOkAt === undefined, canDelete: mayAdminister }
        : null,
      mayAdminister,
    };
  }
}

function nameOf({ namespace, params }: ConnectionRequest): string {
  return `${namespace.name}/${params.connectionId}`;
}

/** Returns the path of the page, relative to the root of the service. */
function addressOf({ params: { namespace, connectionId } }: ConnectionRequest): string {
  return `ui/c/${encodeURIComponent(namespace)}/${encodeURIComponent(connectionId)}`;
}
