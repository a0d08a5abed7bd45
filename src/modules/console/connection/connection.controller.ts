/**
 * `/ui/c/{namespace}/{connectionId}`: a connection. A browser that opens its MCP address is led here. The parts of the page are those
 * that REST answers to the same account: a guest sees the state, the ways to connect, the tools of its grant and its own calls. What does not exist
 * and what the person may not know of are one page.
 *
 * Every form posts here and names in `do` what shall be done, under the rule of the route of REST that does the same. A refused form
 * is shown again with what was typed, but for values of headers. `check` answers with the steps of a diagnosis, which nothing stores.
 */
import { Controller, Get, Header, Param, Post, Query, Req, Res } from '@nestjs/common';
import { isUUID } from 'class-validator';
import type { Request, Response } from 'express';
import { Env } from '../../../config/env.js';
import { DomainError, InvalidInputError, NotFoundError, statusOf } from '../../../platform/errors/domain-error.js';
import { noticeOf, sendFramed, type Framed } from '../../../platform/pages/frame.js';
import { redirectTo, rootFrom } from '../../../platform/pages/page.js';
import { CurrentPerson, Page, SentForm } from '../../auth/access.decorator.js';
import { AccessService } from '../../auth/access.service.js';
import type { AccessRule, Caller, OwnedNamespace, SessionCaller } from '../../auth/access.types.js';
import { MembersService } from '../../auth/members.service.js';
import { ConnectionsService } from '../../connections/connections.service.js';
import { listedTools, ownConnections, ownConnectionsOnly } from '../../connections/core/connections.access.js';
import { DiagnosisService } from '../../connections/diagnosis/diagnosis.service.js';
import { ConnectionLogService } from '../../connections/log/connection-log.service.js';
import { TRIAL_CAPABILITIES } from '../../connections/mcp-trial.service.js';
import { RecordingsService } from '../../connections/mock/recordings.service.js';
import { ConnectionToolsService } from '../../connections/tools/connection-tools.service.js';
import { GrantsService } from '../../grants/grants.service.js';
import { NamespacesService } from '../../namespaces/namespaces.service.js';
import { nothingHere } from '../addresses.page.js';
import { ConnectService } from '../clients/connect.service.js';
import { connectionPage, DONE } from './connection.page.js';
import type { ConnectionView } from './connection-view.js';
import { toolsPart, type ToolsQuery } from './connection-tools.page.js';
import { faultOf } from '../forms.page.js';
import { changeIn, grantIn } from './connection-forms.js';

/** Grants of one page of the list; records of *Last calls*, and recorded calls that are shown. */
const GRANTS_PAGE_SIZE = 50;
const CALLS_MAX = 20;

/** The rules of REST: of the connection itself, of its diagnosis and recording, of changes, and of what stays with the owner. */
const RULES = {
  see: { scope: 'connections:read', ...listedTools },
  read: { scope: 'connections:read', ...ownConnections },
  change: { scope: 'connections:write', ...ownConnections },
  administer: { scope: 'connections:write', ...ownConnectionsOnly },
  export: { scope: 'connections:read', ...ownConnectionsOnly },
} as const satisfies Record<string, AccessRule>;

/** The rule of each form; {@link RULES} `change` for those that are not named. */
const RULE_OF: ReadonlyMap<string, AccessRule> = new Map<string, AccessRule>([
  ['check', RULES.read],
  ['delete', RULES.administer],
  ['grant', RULES.administer],
  ['end', RULES.administer],
]);

interface ConnectionAddress {
  namespace: string;
  connectionId: string;
}

type Shown = Pick<ConnectionView, 'fault' | 'diagnosis'> & {
  notice?: Framed['notice'];
  status?: number;
  query?: ToolsQuery & { client?: unknown; grants?: unknown };
};

@Controller('ui/c/:namespace/:connectionId')
export class ConnectionPageController {
  constructor(
    private readonly env: Env,
    private readonly accessService: AccessService,
    private readonly connectionsService: ConnectionsService,
    private readonly connectService: ConnectService,
    private readonly connectionToolsService: ConnectionToolsService,
    private readonly diagnosisService: DiagnosisService,
    private readonly connectionLogService: ConnectionLogService,
    private readonly recordingsService: RecordingsService,
    private readonly grantsService: GrantsService,
    private readonly namespacesService: NamespacesService,
    private readonly membersService: MembersService,
  ) {}

  @Get()
  @Page('connections:read')
  show(
    @Param() address: ConnectionAddress,
    @Query() query: NonNullable<Shown['query']> & { done?: unknown },
    @CurrentPerson() person: SessionCaller,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    return this.send(address, person, request, response, { query, notice: noticeOf(query.done, DONE) });
  }

  @Post()
  @Page('connections:write')
  async act(
    @Param() address: ConnectionAddress,
    @SentForm() form: URLSearchParams,
    @CurrentPerson() person: SessionCaller,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    const action = form.get('do') ?? '';
    const opened = await this.opened(person, address, RULE_OF.get(action) ?? RULES.change).catch(noneOf);
    let view: Shown = {};
    try {
      const outcome = opened && (await this.apply(action, form, opened, address.connectionId));
      if (outcome === 'deleted') return redirectTo(response, `${rootFrom(request.path)}ui/?done=deleted`);
      if (typeof outcome === 'string') {
        return redirectTo(response, `./${encodeURIComponent(address.connectionId)}?done=${outcome}`);
      }
      if (outcome) view = { diagnosis: outcome };
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      view = { fault: faultOf(form, error), status: statusOf[error.kind] };
    }
    await this.send(address, person, request, response, view);
  }

  /** The recording as a fixture, to be stored. */
  @Get('fixture')
  @Header('cache-control', 'no-store')
  @Page('connections:read')
  async fixture(
    @Param() address: ConnectionAddress,
    @CurrentPerson() person: SessionCaller,
    @Res() response: Response,
  ): Promise<void> {
    const { namespace } = await this.opened(person, address, RULES.export);
    response.attachment(`${address.connectionId}.json`);
    response.json(await this.recordingsService.fixture(namespace, address.connectionId));
  }

  /** Does what a form asks for. @returns the word of a sentence, or a diagnosis @throws DomainError */
  private async apply(
    action: string,
    form: URLSearchParams,
    { namespace, caller }: { namespace: OwnedNamespace; caller: Caller },
    connectionId: string,
  ): Promise<keyof typeof DONE | 'deleted' | NonNullable<ConnectionView['diagnosis']>> {
    // A form never makes a connection.
    await this.connectionsService.get(namespace, connectionId, caller);
    switch (action) {
      case 'check':
        return this.diagnosisService.diagnose(namespace, connectionId, caller);
      case 'record':
      case 'stop':
        await this.recordingsService.set(namespace, connectionId, action === 'record');
        return action;
      case 'forget':
        await this.recordingsService.remove(namespace, connectionId);
        return action;
      case 'delete':
        if (form.get('typed')?.trim() !== connectionId) {
          throw new InvalidInputError('The id that you typed is another one: nothing was deleted');
        }
        await this.connectionsService.remove(namespace, connectionId);
        return 'deleted';
      case 'grant': {
        const target = await this.grantTarget(namespace, connectionId);
        await this.grantsService.set(
          target,
          caller,
          await this.grantsService.checked(grantIn(form)),
          () => new NotFoundError('Gone'),
        );
        return 'granted';
      }
      case 'end': {
        const id = form.get('id') ?? '';
        if (!isUUID(id)) throw new NotFoundError('Grant not found');
        await this.grantsService.remove(await this.grantTarget(namespace, connectionId), caller, id, {});
        return 'ended';
      }
    }
    const body = await this.connectionsService.checked(changeIn(action, form));
    await this.connectionsService.set(namespace, connectionId, body, caller);
    return 'changed';
  }

  private async send(
    address: ConnectionAddress,
    person: SessionCaller,
    request: Request,
    response: Response,
    { query = {}, status = 200, notice, ...rest }: Shown,
  ): Promise<void> {
    const view = await this.viewOf(address, person, query).catch(noneOf);
    if (!view) {
      const missing = () => nothingHere(rootFrom(request.path));
      return sendFramed(this.env, request, response, person.accountName, missing, 404);
    }
    const { setupUrl } = view.connection.status;
    const ownPath = setupUrl?.startsWith(`${this.env.baseUrl}/`) && setupUrl.slice(this.env.baseUrl.length + 1);
    const way = ownPath ? { setupUrl: rootFrom(request.path) + ownPath } : {};
    const page = (token: ConnectionView['token']) => ({
      ...connectionPage({ ...view, ...rest, ...way, token }),
      notice,
    });
    sendFramed(this.env, request, response, person.accountName, page, status);
  }

  private async viewOf(
    address: ConnectionAddress,
    person: SessionCaller,
    query: NonNullable<Shown['query']>,
  ): Promise<Omit<ConnectionView, 'token' | 'setupUrl'>> {
    const { connectionId } = address;
    const { namespace, caller } = await this.opened(person, address, RULES.see);
    const isAllowed = async (rule: AccessRule) => {
      const isRefused = (error: unknown) =>
        error instanceof DomainError && ['not_found', 'forbidden'].includes(error.kind);
      try {
        return (await this.opened(person, address, rule)) !== null;
      } catch (error) {
        if (isRefused(error)) return false;
        throw error;
      }
    };
    const connection = await this.connectionsService.get(namespace, connectionId, caller);
    const ask = connection.status.state === 'connected' || query.ask !== undefined;
    const listing = await this.readTools(namespace, connectionId, caller, ask);
    const withheld = caller.grant?.level === 'call' ? [] : listing.withheld;
    const mayRead = await isAllowed(RULES.read);
    const mayAdminister = await isAllowed(RULES.administer);
    // A log that cannot be read now is left out.
    const calls = await this.connectionLogService
      .list(namespace, connectionId, { limit: CALLS_MAX }, caller)
      .catch((error: unknown) => {
        if (error instanceof DomainError) return null;
        throw error;
      });
    const isByUrl = connection.mcpUrl !== null && !connection.mcpUrl.startsWith(`${this.env.baseUrl}/run/`);
    return {
      namespace: namespace.name,
      connection,
      grant: caller.grant,
      connect: this.connectService.part({ kind: 'connection', namespace: namespace.name, connectionId }, query.client),
      tools: toolsPart(connectionId, { tools: listing.tools, withheld }, query),
      mayRead,
      calls,
      recording: mayRead && !connection.mock ? await this.recordingsService.get(namespace, connectionId) : null,
      recorded:
        mayAdminister && !connection.mock
          ? (await this.recordingsService.callsOf(namespace, connectionId, { limit: CALLS_MAX })).calls
          : [],
      changes: (await isAllowed(RULES.change))
        ? {
            canMove: mayAdminister && isByUrl && connection.status.lastOkAt === undefined,
            canDelete: mayAdminister,
          }
        : null,
      access: mayAdminister ? await this.accessOf(namespace, connectionId, person, query.grants) : null,
    };
  }

  /** Who may call the connection. The owner is an organization of the person, or its account. */
  private async accessOf(
    namespace: OwnedNamespace,
    connectionId: string,
    person: SessionCaller,
    page: unknown,
  ): Promise<ConnectionView['access']> {
    const owner = await this.namespacesService.find(namespace.name);
    const organization = owner && (await this.membersService.find(person, owner.accountId));
    const target = await this.grantTarget(namespace, connectionId);
    const first = { page: 1, pageSize: GRANTS_PAGE_SIZE };
    return {
      owner: organization?.name ?? person.accountName,
      isOrganization: organization !== null,
      granted: await this.grantsService.list(target, { ...first, page: Math.max(1, Math.trunc(Number(page)) || 1) }),
      ofNamespace: (await this.grantsService.list({ kind: 'namespace', id: namespace.id }, { ...first, pageSize: 100 }))
        .grants,
    };
  }

  private async grantTarget({ id: namespaceId }: OwnedNamespace, connectionId: string) {
    const id = await this.grantsService.findConnection(namespaceId, connectionId);
    if (id === null) throw new NotFoundError('Gone');
    return { kind: 'connection', id } as const;
  }

  private readTools(namespace: OwnedNamespace, connectionId: string, { grant }: Caller, ask: boolean) {
    return this.connectionToolsService.known(namespace, connectionId, grant?.tools, {
      ask,
      capabilities: TRIAL_CAPABILITIES,
    });
  }

  private async opened(person: SessionCaller, { namespace: owner, connectionId }: ConnectionAddress, rule: AccessRule) {
    const { caller, namespace } = await this.accessService.authorize(person, rule, { owner, connectionId });
    if (!namespace) throw new Error('The rule has an owner');
    return { caller, namespace };
  }
}

function noneOf(error: unknown): null {
  if (error instanceof DomainError && error.kind === 'not_found') return null;
  throw error;
}
