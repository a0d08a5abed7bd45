/**
 * `/ui/access/{kind}/{target}`: the grants of a server, a connection or a namespace, for its owner and for editors of the organization
 * that owns it. For everybody else it looks like a target that does not exist. With `?from=add` it is the last step of adding a server.
 */
import { Controller, Get, Post } from '@nestjs/common';
import { isUUID } from 'class-validator';
import { InvalidInputError, NotFoundError } from '../../platform/errors/domain-error.js';
import { respondToForm, type RejectedForm } from '../../platform/pages/forms.js';
import { FramedPage, noticeOf, Redirect } from '../../platform/pages/frame.js';
import { CurrentPage, Form, Page, type PageRequest } from '../auth/access.decorator.js';
import { AccessService } from '../auth/access.service.js';
import type { SessionCaller } from '../auth/access.types.js';
import { MembersService } from '../auth/members.service.js';
import { ConnectionToolsService } from '../connections/tools/connection-tools.service.js';
import { AccessRequestsService } from '../grants/access-requests.service.js';
import { GrantsService } from '../grants/grants.service.js';
import { ServersService } from '../servers/servers.service.js';
import { targetKinds, type Target } from '../targets/target.types.js';
import { TargetsService } from '../targets/targets.service.js';
import { accessPath, DONE, targetAccessPage } from './target-access.page.js';

/** Grants of one page of the list. */
const PAGE_SIZE = 50;
/** Open requests with a form. */
const REQUESTS_MAX = 20;

type TargetRequest = PageRequest<{ kind: string; target: string }>;

@Controller('ui/access/:kind/:target')
export class TargetAccessController {
  constructor(
    private readonly accessService: AccessService,
    private readonly targetsService: TargetsService,
    private readonly grantsService: GrantsService,
    private readonly accessRequestsService: AccessRequestsService,
    private readonly membersService: MembersService,
    private readonly serversService: ServersService,
    private readonly connectionToolsService: ConnectionToolsService,
  ) {}

  @Get()
  @Page('accounts:read')
  show(@CurrentPage() page: TargetRequest): Promise<FramedPage> {
    return this.render(page);
  }

  /**
   * Grants access to each account of the form, or to the account of a request. After an error, the form keeps the accounts that have
   * none yet.
   */
  @Post('grant')
  @Form('accounts:write')
  grant(@CurrentPage() page: TargetRequest) {
    return this.respond(page, 'grant', async (target) => {
      const { form, person } = page;
      const [tools, until, request] = [form.getAll('tool'), form.get('until') ?? '', form.get('id')];
      const termsFor = (account: string) =>
        this.grantsService.checkBody({
          account,
          level: form.get('level'),
          ...(tools.length > 0 && { tools: { allow: tools } }),
          ...(until !== '' && { expiresAt: `${until}T00:00:00Z` }),
        });
      if (request !== null) return this.decide(target, page, { grant: await termsFor(request) });
      const accounts = (form.get('account') ?? '').split(',').map((name) => name.trim());
      const names = [...new Set(accounts)].filter((name) => name !== '');
      if (names.length === 0) throw new InvalidInputError('Enter at least one name').atField('account');
      for (const [at, account] of names.entries()) {
        form.set('account', names.slice(at).join(', '));
        await this.grantsService.set(target, person, await termsFor(account), targetMissing);
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
      const id = page.form.get('id') ?? '';
      if (!isUUID(id)) throw new NotFoundError('Grant not found');
      await this.grantsService.remove(target, page.person, id, {});
      return 'ended';
    });
  }

  /** Answers the request that the form names. */
  private async decide(
    { kind, namespace, name }: Target,
    { form, person }: TargetRequest,
    decision: Parameters<AccessRequestsService['decide']>[3],
  ): Promise<keyof typeof DONE> {
    const id = form.get('id') ?? '';
    if (kind !== 'server' || !isUUID(id)) throw new NotFoundError('Access request not found');
    const server = await this.serversService.find({ namespace, name }, person);
    await this.accessRequestsService.decide(server, id, person, decision);
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
    const target = kind ? await this.targetsService.find({ kind, namespace, name }) : null;
    if (!target || !this.accessService.isAllowed(person, 'administer', target)) throw targetMissing();
    return target;
  }

  private async render(page: TargetRequest, rejected?: RejectedForm): Promise<FramedPage> {
    const { person, query, form } = page;
    const target = await this.targetOf(page);
    const organization = await this.membersService.find(person, target.ownerId);
    const wider = target.kind === 'connection' ? ({ kind: 'namespace', id: target.namespaceId } as const) : null;
    const currentPage = Math.max(1, Math.trunc(Number(query.page)) || 1);
    const view = {
      target,
      owner: organization?.name ?? person.accountName,
      isOrganization: organization !== null,
      granted: await this.grantsService.list(target, { page: currentPage, pageSize: PAGE_SIZE }),
      ofNamespace: wider ? (await this.grantsService.list(wider, { page: 1, pageSize: 100 })).grants : [],
      requests: await this.requestsOf(target, query.request ?? form.get('id')),
      tools: await this.toolsOf(target, person),
      isAdding: query.from === 'add' || form.get('from') === 'add',
      notice: noticeOf(query.done, DONE),
      rejected,
    };
    return new FramedPage((token, root) => {
      return targetAccessPage({ ...view, token, root, address: root + accessPath(target) });
    });
  }

  /** The open requests for a server, the one that the address names first. */
  private async requestsOf({ kind, id: serverId }: Target, chosen: unknown) {
    if (kind !== 'server') return [];
    const { requests } = await this.accessRequestsService.list({ serverId, isOpen: true }, { pageSize: 100 });
    return requests.toSorted((a, b) => Number(b.id === chosen) - Number(a.id === chosen)).slice(0, REQUESTS_MAX);
  }

  /** The names of the tools that are known of a server or a connection. */
  private async toolsOf({ kind, namespaceId: id, namespace, name }: Target, person: SessionCaller): Promise<string[]> {
    if (kind === 'namespace') return [];
    if (kind === 'server') {
      const { tools } = await this.serversService.detail({ namespace, name }, person);
      return tools?.map((tool) => tool.name) ?? [];
    }
    const { tools } = await this.connectionToolsService.listKnown({ id, name: namespace }, name, null, false);
    return tools?.map((tool) => tool.name) ?? [];
  }
}

const targetMissing = () => new NotFoundError('Target not found');
