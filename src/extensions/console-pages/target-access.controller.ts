/**
 * `/ui/access/{kind}/{target}`: the grants of a server, a connection or a namespace, for its owner and for editors of
 * the organization that owns it. For everybody else it returns 404. With `?from=add` it is the last step of adding a
 * server.
 */
import { Controller, Get, Post } from '@nestjs/common';
import {
  Accounts,
  CurrentPage,
  Form,
  FramedPage,
  Grants,
  InvalidInputError,
  namespaceNamed,
  NotFoundError,
  noticeOf,
  Page,
  qualifiedNameOf,
  Redirect,
  respondToForm,
  Servers,
  targetKinds,
  Tools,
  type PageRequest,
  type RejectedForm,
  type SessionCaller,
  type Target,
} from '../../extension.js';
import { accessPath, DONE, targetAccessPage } from './target-access.page.js';

const PAGE_SIZE = 50;
/** Maximum number of open requests with a form. */
const REQUESTS_MAX = 20;

type TargetRequest = PageRequest<{ kind: string; target: string }>;

@Controller('ui/access/:kind/:target')
export class TargetAccessController {
  constructor(
    private readonly accounts: Accounts,
    private readonly grants: Grants,
    private readonly servers: Servers,
    private readonly tools: Tools,
  ) {}

  @Get()
  @Page('accounts:read')
  show(@CurrentPage() page: TargetRequest): Promise<FramedPage> {
    return this.render(page);
  }

  /**
   * Grants access to each account of the form, or to the account of a request. After an error, the form keeps the
   * accounts that still have no access.
   */
  @Post('grant')
  @Form('accounts:write')
  grant(@CurrentPage() page: TargetRequest) {
    return this.respond(page, 'grant', async (target) => {
      const { form, person } = page;
      const [tools, until, request] = [form.getAll('tool'), form.get('until') ?? '', form.get('id')];
      const termsFor = (account: string) => ({
        account,
        level: form.get('level'),
        ...(tools.length > 0 && { tools: { allow: tools } }),
        ...(until !== '' && { expiresAt: `${until}T00:00:00Z` }),
      });
      if (request !== null) return this.decide(target, page, { grant: termsFor(request) });
      const accounts = (form.get('account') ?? '').split(',').map((name) => name.trim());
      const names = [...new Set(accounts)].filter((name) => name !== '');
      if (names.length === 0) throw new InvalidInputError('Enter at least one name').atField('account');
      for (const [at, account] of names.entries()) {
        form.set('account', names.slice(at).join(', '));
        await this.grants.set(person, target, termsFor(account));
      }
      return 'granted';
    });
  }

  @Post('refuse')
  @Form('accounts:write')
  refuse(@CurrentPage() page: TargetRequest) {
    return this.respond(page, 'refuse', (target) =>
      this.decide(target, page, { refuse: page.form.get('refuse') ?? '' }),
    );
  }

  @Post('end')
  @Form('accounts:write')
  revokeGrant(@CurrentPage() page: TargetRequest) {
    return this.respond(page, 'end', async (target) => {
      await this.grants.revoke(page.person, target, page.form.get('id') ?? '');
      return 'ended';
    });
  }

  /** Approves or rejects the request that the form names. */
  private async decide(
    target: Target,
    { form, person }: TargetRequest,
    decision: Parameters<Grants['decideRequest']>[3],
  ): Promise<keyof typeof DONE> {
    const id = form.get('id') ?? '';
    if (target.kind !== 'server') throw new NotFoundError('Access request not found');
    await this.grants.decideRequest(person, qualifiedNameOf(target), id, decision);
    return decision.grant ? 'granted' : 'refused';
  }

  private respond(page: TargetRequest, name: string, work: (target: Target) => Promise<keyof typeof DONE>) {
    const run = async () => {
      const target = await this.targetOf(page);
      const from = page.form.get('from') === 'add' ? '&from=add' : '';
      return new Redirect(`${accessPath(target)}?done=${await work(target)}${from}`);
    };
    return respondToForm(name, page.form, run, (rejected) => this.render(page, rejected));
  }

  private async targetOf({ params, person }: TargetRequest): Promise<Target> {
    const kind = targetKinds.find((name) => name === params.kind);
    const [, namespace = '', name = ''] = /^([^/]*)(?:\/(.*))?$/.exec(params.target) ?? [];
    const target = kind ? await this.accounts.target(person, 'administer', { kind, namespace, name }) : null;
    if (!target) throw new NotFoundError('Target not found');
    return target;
  }

  private async render(page: TargetRequest, rejected?: RejectedForm): Promise<FramedPage> {
    const { person, query, form } = page;
    const target = await this.targetOf(page);
    const organization = await this.accounts.findOrganization(person, target.ownerId);
    const wider = target.kind === 'connection' ? namespaceNamed(target.namespace) : null;
    const currentPage = Math.max(1, Math.trunc(Number(query.page)) || 1);
    const view = {
      target,
      owner: organization?.name ?? person.accountName,
      isOrganization: organization !== null,
      granted: await this.grants.list(person, target, { page: currentPage, pageSize: PAGE_SIZE }),
      ofNamespace: wider ? (await this.grants.list(person, wider, { page: 1, pageSize: 100 })).grants : [],
      requests: await this.requestsOf(target, person, query.request ?? form.get('id')),
      tools: await this.toolsOf(target, person),
      isAdding: query.from === 'add' || form.get('from') === 'add',
      notice: noticeOf(query.done, DONE),
      rejected,
    };
    return new FramedPage((token, root) => {
      return targetAccessPage({ ...view, token, root, address: root + accessPath(target) });
    });
  }

  /** Returns the open requests for a server, the one that the address names first. */
  private async requestsOf(target: Target, person: SessionCaller, chosen: unknown) {
    if (target.kind !== 'server') return [];
    const { requests } = await this.grants.listServerRequests(person, qualifiedNameOf(target), { pageSize: 100 });
    return requests.toSorted((a, b) => Number(b.id === chosen) - Number(a.id === chosen)).slice(0, REQUESTS_MAX);
  }

  /** Returns the names of the known tools of a server or a connection. */
  private async toolsOf(target: Target, person: SessionCaller): Promise<string[]> {
    const name = qualifiedNameOf(target);
    if (target.kind === 'namespace') return [];
    const { tools } =
      target.kind === 'server'
        ? await this.servers.detail(person, name)
        : await this.tools.list(person, name, { ask: false });
    return tools?.map((tool) => tool.name) ?? [];
  }
}
