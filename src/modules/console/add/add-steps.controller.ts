/**
 * The steps after a server was added (`add.controller.ts`), each a page that works without scripts and that who owns the connection
 * opens: `/ui/add/{namespace}/{connectionId}/tools`, which tools it offers; `…/access`, who may call it. Who manages the connection
 * also chooses its tools; `?from=settings` leads back to its page. The last one
 * leads to the page of the connection at Connect. Both store what REST stores: the connection's `tools`, and grants of calls.
 *
 * A refused form is shown again with what was typed. Of several names those that could be let in are; the sentence says which. What
 * does not exist and what the person may not change are one page.
 */
import { Controller, Get, Param, Post, Req, Res } from '@nestjs/common';
import type { Request, Response } from 'express';
import { Env } from '../../../config/env.js';
import { DomainError, InvalidInputError, statusOf } from '../../../platform/errors/domain-error.js';
import { sendFramed, type Framed } from '../../../platform/pages/frame.js';
import type { Html } from '../../../platform/pages/html.js';
import { redirectTo, rootFrom } from '../../../platform/pages/page.js';
import { CurrentPerson, Page, SentForm } from '../../auth/access.decorator.js';
import { AccessService } from '../../auth/access.service.js';
import type { AccessRule, Caller, OwnedNamespace, SessionCaller } from '../../auth/access.types.js';
import { MembersService } from '../../auth/members.service.js';
import { ConnectionsService } from '../../connections/connections.service.js';
import { ownConnections, ownConnectionsOnly } from '../../connections/core/connections.access.js';
import { ResourceNotFoundError } from '../../connections/core/connections.errors.js';
import { TRIAL_CAPABILITIES } from '../../connections/mcp-trial.service.js';
import { ConnectionToolsService } from '../../connections/tools/connection-tools.service.js';
import { GrantsService } from '../../grants/grants.service.js';
import { NamespacesService } from '../../namespaces/namespaces.service.js';
import { accessStep, setupOf, toolsStep, type Connection } from './add-steps.page.js';
import { nothingHere } from '../addresses.page.js';
import { namesIn } from './let-in.page.js';
import { ticksAfter } from './offered-tools.page.js';
import type { Tool } from '../connection/tool-try.page.js';

const ACCOUNT_NAME = /^[^\p{Cc}\p{Cs}]{1,255}$/u;

/** A connection that the person owns, with the page to answer on. */
interface Opened {
  namespace: OwnedNamespace;
  caller: Caller;
  connection: Connection;
  person: SessionCaller;
  request: Request;
  response: Response;
}

/** Route parameters. */
interface Address {
  namespace: string;
  connectionId: string;
}

@Controller('ui/add/:namespace/:connectionId')
export class AddStepsController {
  constructor(
    private readonly env: Env,
    private readonly accessService: AccessService,
    private readonly connectionsService: ConnectionsService,
    private readonly connectionToolsService: ConnectionToolsService,
    private readonly grantsService: GrantsService,
    private readonly membersService: MembersService,
    private readonly namespacesService: NamespacesService,
  ) {}

  @Get('tools')
  @Page('connections:write')
  showTools(
    @Param() address: Address,
    @CurrentPerson() person: SessionCaller,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    return this.open(address, ownConnections, person, request, response, (opened) => this.chooseTools(opened, null));
  }

  @Post('tools')
  @Page('connections:write')
  actOnTools(
    @Param() address: Address,
    @SentForm() form: URLSearchParams,
    @CurrentPerson() person: SessionCaller,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    return this.open(address, ownConnections, person, request, response, (opened) => this.chooseTools(opened, form));
  }

  @Get('access')
  @Page('connections:write')
  showAccess(
    @Param() address: Address,
    @CurrentPerson() person: SessionCaller,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    return this.open(address, ownConnectionsOnly, person, request, response, (opened) => this.letIn(opened, null));
  }

  @Post('access')
  @Page('connections:write')
  actOnAccess(
    @Param() address: Address,
    @SentForm() form: URLSearchParams,
    @CurrentPerson() person: SessionCaller,
    @Req() request: Request,
    @Res() response: Response,
  ): Promise<void> {
    return this.open(address, ownConnectionsOnly, person, request, response, (opened) => this.letIn(opened, form));
  }

  /** Shows the tools with their ticks; a form with `do=save` stores them and leads on. */
  private async chooseTools({ namespace, caller, connection, ...page }: Opened, form: URLSearchParams | null) {
    const { connectionId } = connection;
    // Who only manages the connection opens no later step.
    const isAdding = page.request.query.from !== 'settings' && !caller.grant;
    const options = { ask: true, capabilities: TRIAL_CAPABILITIES };
    const listing = await this.connectionToolsService.known(namespace, connectionId, null, options);
    const offered = listing.tools?.map(({ text }) => JSON.parse(text) as Tool);
    const tools = offered ? [...offered, ...listing.withheld.map((name): Tool => ({ name }))] : null;
    const ticked = form ? ticksAfter(form, tools ?? []) : new Set(offered?.map(({ name }) => name));
    let refusal: DomainError | null = null;
    if (form?.get('do') === 'save' && tools) {
      try {
        if (ticked.size === 0) throw new InvalidInputError('Select at least one tool.');
        const choice = ticked.size === tools.length ? {} : { allow: [...ticked] };
        const body = await this.connectionsService.checked({ tools: choice });
        await this.connectionsService.set(namespace, connectionId, body, caller);
        return redirectTo(
          page.response,
          isAdding ? 'access' : `../../../c/${addressOf(namespace, connection)}?done=changed`,
        );
      } catch (error) {
        if (!(error instanceof DomainError) || error.kind === 'not_found') throw error;
        refusal = error;
      }
    }
    const q = (form?.get('q') ?? '').trim().slice(0, 255);
    const setup = setupOf(this.env, rootFrom(page.request.path), namespace.name, connection);
    const view = {
      isAdding,
      tools,
      ticked,
      q,
      page: Number(form?.get('page')),
      setup,
      fault: refusal?.message ?? null,
    };
    this.send(page, (token) => toolsStep(connection, { ...view, token }), refusal);
  }

  /** Shows who may be let in; a form lets in who was chosen and leads to the page of the connection. */
  private async letIn({ namespace, caller, connection, ...page }: Opened, form: URLSearchParams | null) {
    const owner = (await this.namespacesService.find(namespace.name))?.accountId ?? '';
    const { memberships } = await this.membersService.organizationsOf(page.person.accountId);
    const ofOwner = memberships.find(({ organizationId }) => organizationId === owner);
    // An editor lets members in only, and the members of the organization call it anyway.
    const organizations = memberships.filter(
      (membership) => membership !== ofOwner && membership.role !== 'guest' && (!ofOwner || ofOwner.role === 'owner'),
    );
    const who = form?.get('who') ?? (ofOwner ? '' : 'own');
    const names = form?.get('names') ?? '';
    const letIn: string[] = [];
    const faults: string[] = [];
    let refusal: DomainError | null = null;
    if (form) {
      const chosen = who === 'people' ? namesIn(names) : [who].filter((id) => id !== 'own');
      const isKnown = ['own', 'people', ...organizations.map(({ organizationId }) => organizationId)].includes(who);
      if (!isKnown) refusal = new InvalidInputError('Choose who may call it.');
      else if (who === 'people' && chosen.length === 0) faults.push('Enter at least one name.');
      const id = await this.grantsService.findConnection(namespace.id, connection.connectionId);
      if (id === null) throw new ResourceNotFoundError();
      const missing = () => new ResourceNotFoundError();
      for (const account of isKnown ? chosen : []) {
        try {
          if (!ACCOUNT_NAME.test(account)) throw new InvalidInputError('Enter a valid account name.');
          await this.grantsService.set({ kind: 'connection', id }, caller, { account, level: 'call' }, missing);
          letIn.push(account);
        } catch (error) {
          if (!(error instanceof DomainError)) throw error;
          faults.push(`${account}: ${error.message}`);
        }
      }
      if (!refusal && faults.length === 0) {
        return redirectTo(page.response, `../../../c/${addressOf(namespace, connection)}?done=added#connect`);
      }
    }
    const ownLabel = ofOwner ? `Only the members of ${ofOwner.organizationName}` : 'Only me';
    const view = { who, names, own: ownLabel, organizations, letIn, faults, fault: refusal?.message ?? null };
    const error = refusal ?? (faults.length > 0 ? new InvalidInputError('') : null);
    this.send(page, (token) => accessStep(connection, { ...view, token }), error);
  }

  private send(
    { person, request, response }: Pick<Opened, 'person' | 'request' | 'response'>,
    page: (token: Html) => Framed,
    refusal: DomainError | null,
  ): void {
    const status = refusal ? statusOf[refusal.kind] : 200;
    sendFramed(this.env, request, response, person.accountName, page, status);
  }

  /** Runs `step` for who may change the connection; for everybody else, and without one, the page says that nothing is there. */
  private async open(
    { namespace: owner, connectionId }: Address,
    access: Partial<AccessRule>,
    person: SessionCaller,
    request: Request,
    response: Response,
    step: (opened: Opened) => Promise<void>,
  ): Promise<void> {
    try {
      const rule = { scope: 'connections:write', ...access } as const;
      const { caller, namespace } = await this.accessService.authorize(person, rule, { owner, connectionId });
      if (!namespace) throw new Error('The rule has an owner');
      const connection = await this.connectionsService.get(namespace, connectionId, caller);
      await step({ namespace, caller, connection, person, request, response });
    } catch (error) {
      if (!(error instanceof DomainError) || !['not_found', 'forbidden'].includes(error.kind)) throw error;
      const missing = () => nothingHere(rootFrom(request.path));
      sendFramed(this.env, request, response, person.accountName, missing, 404);
    }
  }
}

function addressOf({ name }: OwnedNamespace, { connectionId }: Connection): string {
  return `${name}/${encodeURIComponent(connectionId)}`;
}
