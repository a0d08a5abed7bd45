/**
 * The step after a server was added (`add.controller.ts`), a page that works without scripts:
 * `/ui/add/{namespace}/{connectionId}/tools` selects the tools that the connection offers. It stores the connection's
 * `tools`, as REST does, and redirects to the access page. Managers of the connection can also select tools;
 * `?from=settings` redirects back to the page of the connection.
 */
import { Controller, Get, Post } from '@nestjs/common';
import {
  Connections,
  CurrentPage,
  Env,
  Form,
  FramedPage,
  InvalidInputError,
  ownConnections,
  Page,
  Redirect,
  respondToForm,
  setupOf,
  Tools,
  type ListedTool,
  type PageRequest,
} from '../../../extension.js';
import { toolsStep } from './add-steps.page.js';
import { ticksAfter } from './offered-tools.page.js';
import { accessPath } from '../target-access.page.js';

type StepRequest = PageRequest<{ namespace: string; connectionId: string }>;

@Controller('ui/add/:namespace/:connectionId')
export class AddStepsController {
  constructor(
    private readonly env: Env,
    private readonly connections: Connections,
    private readonly tools: Tools,
  ) {}

  @Get('tools')
  @Page('connections:write', ownConnections)
  showTools(@CurrentPage() page: StepRequest): Promise<FramedPage> {
    return this.renderTools(page);
  }

  /** Shows the tools again, with the ticks and the search words of the form. */
  @Post('tools')
  @Form('connections:write', ownConnections)
  tickTools(@CurrentPage() page: StepRequest): Promise<FramedPage> {
    return this.renderTools(page);
  }

  /** Stores the ticks and redirects to the next step. */
  @Post('tools/save')
  @Form('connections:write', ownConnections)
  saveTools(@CurrentPage() page: StepRequest): Promise<FramedPage | Redirect> {
    const { namespace, params, person, form } = page;
    const work = async () => {
      const { tools } = await this.toolsOf(page);
      const target = { kind: 'connection', namespace: namespace.name, name: params.connectionId } as const;
      if (!tools) return this.renderTools(page);
      const ticked = ticksAfter(form, tools);
      if (ticked.size === 0) throw new InvalidInputError('Select at least one tool.');
      const choice = ticked.size === tools.length ? {} : { allow: [...ticked] };
      await this.connections.set(person, `${namespace.name}/${params.connectionId}`, { tools: choice });
      return new Redirect(isAdding(page) ? `${accessPath(target)}?from=add` : `ui/c/${addressOf(page)}?done=changed`);
    };
    return respondToForm('save', form, work, ({ text }) => this.renderTools(page, `${text}.`));
  }

  private async toolsOf({ namespace, params, person }: StepRequest) {
    const { tools: offered, withheld } = await this.tools.list(person, `${namespace.name}/${params.connectionId}`);
    const tools = offered && [...offered, ...withheld.map((name): ListedTool => ({ name }))];
    return { offered, tools };
  }

  private async renderTools(page: StepRequest, fault: string | null = null): Promise<FramedPage> {
    const { namespace, params, person, form } = page;
    const connection = await this.connections.find(person, `${namespace.name}/${params.connectionId}`);
    const { offered, tools } = await this.toolsOf(page);
    const isSent = form.size > 0;
    const ticked = isSent ? ticksAfter(form, tools ?? []) : new Set(offered?.map(({ name }) => name));
    const q = (form.get('q') ?? '').trim().slice(0, 255);
    const view = { isAdding: isAdding(page), tools, ticked, q, page: Number(form.get('page')), fault };
    return new FramedPage((token, root) => {
      const setup = setupOf(this.env, root, connection, `ui/add/${addressOf(page)}/tools`);
      const target = { kind: 'connection', namespace: namespace.name, name: params.connectionId } as const;
      const access = `${root}${accessPath(target)}?from=add`;
      return toolsStep(connection, { ...view, setup, access, token, address: `${root}ui/add/${addressOf(page)}` });
    });
  }
}

/**
 * Returns true for a step of a new connection; false if a manager, or the page of the connection, changes the choice of
 * tools.
 */
function isAdding({ query, form, person }: StepRequest): boolean {
  return query.from !== 'settings' && form.get('from') !== 'settings' && !person.grant;
}

function addressOf({ namespace: { name }, params }: StepRequest): string {
  return `${name}/${encodeURIComponent(params.connectionId)}`;
}
