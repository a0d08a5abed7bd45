import { Controller, Get, Post } from '@nestjs/common';
import {
  Accounts,
  checkedBody,
  CurrentPage,
  Form,
  FramedPage,
  noticeOf,
  Page,
  Redirect,
  respondToForm,
  roles,
  type PageRequest,
  type RejectedForm,
} from '../../extension.js';
import { DONE, peoplePage } from './people.page.js';
import { NewAccountDto, PeopleQueryDto } from './people.dto.js';

const RULE = { operator: true } as const;

/** `/ui/people`: the accounts of the service, for operators. Each form corresponds to a request of `/accounts`. */
@Controller('ui/people')
export class PeoplePageController {
  constructor(private readonly accounts: Accounts) {}

  @Get()
  @Page('accounts:read', RULE)
  show(@CurrentPage() page: PageRequest): Promise<FramedPage> {
    return this.render(page);
  }

  /** Creates an account, invites it into an organization if one is chosen, and shows the link for its password once. */
  @Post('invite')
  @Form('accounts:write', RULE)
  invite(@CurrentPage() page: PageRequest) {
    return this.respond(page, 'invite', async ({ person, form }) => {
      const { name } = await checkedBody(NewAccountDto, { name: form.get('name') });
      const role = roles.find((name) => name === form.get('role'));
      const { id } = await this.accounts.create(person, { name, kind: 'user' });
      if (role) await this.accounts.setMember(person, String(form.get('organization')), id, role);
      return this.linkFor(page, id, name);
    });
  }

  /** Creates another link for the password of an account, which revokes earlier links. */
  @Post('link')
  @Form('accounts:write', RULE)
  link(@CurrentPage() page: PageRequest) {
    return this.respond(page, 'link', async ({ person, form }) => {
      const { id, name } = await this.accounts.find(person, String(form.get('id')));
      return this.linkFor(page, id, name);
    });
  }

  @Post('state')
  @Form('accounts:write', RULE)
  changeState(@CurrentPage() page: PageRequest) {
    return this.respond(page, 'state', async ({ person, form }) => {
      const done = form.get('to') === 'disabled' ? 'disabled' : 'enabled';
      await this.accounts.update(person, String(form.get('id')), { disabled: done === 'disabled' });
      return new Redirect(`ui/people?done=${done}`);
    });
  }

  @Post('operator')
  @Form('accounts:write', RULE)
  changeOperator(@CurrentPage() page: PageRequest) {
    return this.respond(page, 'operator', async ({ person, form }) => {
      const isOperator = form.get('to') === 'operator';
      await this.accounts.update(person, String(form.get('id')), { isOperator });
      return new Redirect(`ui/people?done=${isOperator ? 'operator' : 'user'}`);
    });
  }

  /** Creates an organization that the operator owns, and shows it. */
  @Post('organization')
  @Form('accounts:write', RULE)
  createOrganization(@CurrentPage() page: PageRequest) {
    return this.respond(page, 'organization', async ({ person, form }) => {
      const { name } = await checkedBody(NewAccountDto, { name: form.get('name') });
      const { id } = await this.accounts.create(person, { name, kind: 'organization' });
      await this.accounts.setMember(person, id, person.accountId, 'owner');
      return new Redirect(`ui/o/${encodeURIComponent(name)}`);
    });
  }

  private async linkFor({ person }: PageRequest, accountId: string, name: string): Promise<Redirect> {
    const { url, expiresAt } = await this.accounts.invite(person, accountId);
    return new Redirect('ui/people', [], { name, url, expiresAt });
  }

  private respond(page: PageRequest, name: string, work: (page: PageRequest) => Promise<Redirect>) {
    const show = (rejected: RejectedForm) => this.render({ ...page, query: {} }, rejected);
    return respondToForm(name, page.form, () => work(page), show);
  }

  private async render({ person, query, once }: PageRequest, rejected?: RejectedForm): Promise<FramedPage> {
    const { q, page } = await checkedBody(PeopleQueryDto, { q: query.q ?? '', page: query.page ?? '1' });
    const [people, organizations] = await Promise.all([
      this.accounts.list(person, { q, page, kind: 'user', pageSize: 50 }),
      this.accounts.list(person, { kind: 'organization', pageSize: 100 }),
    ]);
    const notice = noticeOf(query.done, DONE) ?? undefined;
    return new FramedPage((token, root) =>
      peoplePage({
        token,
        address: `${root}ui/people`,
        rejected,
        root,
        ownId: person.accountId,
        q,
        people,
        organizations,
        once,
        notice,
      }),
    );
  }
}
