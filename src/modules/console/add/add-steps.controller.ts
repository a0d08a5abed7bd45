/**
 * The steps after a server was added (`add.controller.ts`), each a page that works without scripts and that who owns the connection
 * opens: `/ui/add/{namespace}/{connectionId}/tools`, which tools it offers; `…/access`, who may call it. Who manages the connection
 * also chooses its tools; `?from=settings` leads back to its page. The last one
 * leads to the page of the connection at Connect. Both store what REST stores: the connection's `tools`, and grants of calls.
 *
 * A rejected form is shown again with what was typed. If only some of several names can be granted access, those are, and the page
 * names the others with the reason. Missing connections, and those hidden from the person, return 404; a grant of calls returns 403.
 */
import { Controller, Get, Post } from '@nestjs/common';
import { Env } from '../../../config/env.js';
import { DomainError, InvalidInputError, statusOf } from '../../../platform/errors/domain-error.js';
import { respondToForm } from '../../../platform/pages/forms.js';
import { FramedPage, Redirect } from '../../../platform/pages/frame.js';
import { CurrentPage, Form, Page, type PageRequest } from '../../auth/access.decorator.js';
import { MembersService } from '../../auth/members.service.js';
import { ConnectionsService } from '../../connections/connections.service.js';
import { ownConnections, ownConnectionsOnly } from '../../connections/core/connections.access.js';
import { ResourceNotFoundError } from '../../connections/core/connections.errors.js';
import { ConnectionToolsService } from '../../connections/tools/connection-tools.service.js';
import { GrantsService } from '../../grants/grants.service.js';
import { TargetsService } from '../../targets/targets.service.js';
import { accessStep, setupOf, toolsStep } from './add-steps.page.js';
import { namesIn } from './let-in.page.js';
import { ticksAfter } from './offered-tools.page.js';
import type { ListedTool } from '../connection/listed-tool.js';

const ACCOUNT_NAME = /^[^\p{Cc}\p{Cs}]{1,255}$/u;

type StepRequest = PageRequest<{ namespace: string; connectionId: string }>;

@Controller('ui/add/:namespace/:connectionId')
export class AddStepsController {
  constructor(
    private readonly env: Env,
    private readonly connectionsService: ConnectionsService,
    private readonly connectionToolsService: ConnectionToolsService,
    private readonly grantsService: GrantsService,
    private readonly membersService: MembersService,
    private readonly targetsService: TargetsService,
  ) {}

  @Get('tools')
  @Page('connections:write', ownConnections)
  showTools(@CurrentPage() page: StepRequest): Promise<FramedPage> {
    return this.renderTools(page);
  }

  /** Shows the tools again, with the ticks and the words of the form. */
  @Post('tools')
  @Form('connections:write', ownConnections)
  tickTools(@CurrentPage() page: StepRequest): Promise<FramedPage> {
    return this.renderTools(page);
  }

  /** Stores the ticks and leads on. */
  @Post('tools/save')
  @Form('connections:write', ownConnections)
  saveTools(@CurrentPage() page: StepRequest): Promise<FramedPage | Redirect> {
    const { namespace, params, person, form } = page;
    const work = async () => {
      const { tools } = await this.toolsOf(page);
      if (!tools) return this.renderTools(page);
      const ticked = ticksAfter(form, tools);
      if (ticked.size === 0) throw new InvalidInputError('Select at least one tool.');
      const choice = ticked.size === tools.length ? {} : { allow: [...ticked] };
      const body = await this.connectionsService.checkBody({ tools: choice });
      await this.connectionsService.set(namespace, params.connectionId, body, person);
      return new Redirect(isAdding(page) ? `ui/add/${addressOf(page)}/access` : `ui/c/${addressOf(page)}?done=changed`);
    };
    return respondToForm('save', form, work, ({ text }) => this.renderTools(page, `${text}.`));
  }

  @Get('access')
  @Page('connections:write', ownConnectionsOnly)
  showAccess(@CurrentPage() page: StepRequest): Promise<FramedPage | Redirect> {
    return this.letIn(page, null);
  }

  @Post('access')
  @Form('connections:write', ownConnectionsOnly)
  actOnAccess(@CurrentPage() page: StepRequest): Promise<FramedPage | Redirect> {
    return this.letIn(page, page.form);
  }

  private async toolsOf({ namespace, params }: StepRequest) {
    const { tools: offered, withheld } = await this.connectionToolsService.listKnown(
      namespace,
      params.connectionId,
      null,
    );
    const tools = offered && [...offered, ...withheld.map((name): ListedTool => ({ name }))];
    return { offered, tools };
  }

  private async renderTools(page: StepRequest, fault: string | null = null): Promise<FramedPage> {
    const { namespace, params, person, form } = page;
    const connection = await this.connectionsService.get(namespace, params.connectionId, person);
    const { offered, tools } = await this.toolsOf(page);
    const isSent = form.size > 0;
    const ticked = isSent ? ticksAfter(form, tools ?? []) : new Set(offered?.map(({ name }) => name));
    const q = (form.get('q') ?? '').trim().slice(0, 255);
    const view = { isAdding: isAdding(page), tools, ticked, q, page: Number(form.get('page')), fault };
    return new FramedPage((token, root) => {
      const setup = setupOf(this.env, root, connection, `ui/add/${addressOf(page)}/tools`);
      return toolsStep(connection, { ...view, setup, token, address: `${root}ui/add/${addressOf(page)}` });
    });
  }

  /** Shows who may be let in; a form lets in who was chosen and leads to the page of the connection. */
  private async letIn(page: StepRequest, form: URLSearchParams | null): Promise<FramedPage | Redirect> {
    const { namespace, params, person } = page;
    const connection = await this.connectionsService.get(namespace, params.connectionId, person);
    const owner = (await this.targetsService.findNamespace(namespace.name))?.ownerId ?? '';
    const { memberships } = await this.membersService.organizationsOf(person.accountId);
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
      const name = params.connectionId;
      const target = await this.targetsService.find({ kind: 'connection', namespace: namespace.name, name });
      if (target?.namespaceId !== namespace.id) throw new ResourceNotFoundError();
      const missing = () => new ResourceNotFoundError();
      for (const account of isKnown ? chosen : []) {
        try {
          if (!ACCOUNT_NAME.test(account)) throw new InvalidInputError('Enter a valid account name.');
          await this.grantsService.set(target, person, { account, level: 'call' }, missing);
          letIn.push(account);
        } catch (error) {
          if (!(error instanceof DomainError)) throw error;
          faults.push(`${account}: ${error.message}`);
        }
      }
      if (!refusal && faults.length === 0) return new Redirect(`ui/c/${addressOf(page)}?done=added#connect`);
    }
    const ownLabel = ofOwner ? `Only the members of ${ofOwner.organizationName}` : 'Only me';
    const view = { who, names, own: ownLabel, organizations, letIn, faults, fault: refusal?.message ?? null };
    const error = refusal ?? (faults.length > 0 ? new InvalidInputError('') : null);
    return new FramedPage((token) => accessStep(connection, { ...view, token }), error ? statusOf[error.kind] : 200);
  }
}

/** True for the steps of a new connection; false if its manager, or its page, changes the choice of tools. */
function isAdding({ query, form, person }: StepRequest): boolean {
  return query.from !== 'settings' && form.get('from') !== 'settings' && !person.grant;
}

function addressOf({ namespace: { name }, params }: StepRequest): string {
  return `${name}/${encodeURIComponent(params.connectionId)}`;
}
