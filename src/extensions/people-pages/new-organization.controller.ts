import { Controller, Get, Post } from '@nestjs/common';
import {
  Accounts,
  button,
  card,
  checkedBody,
  CurrentPage,
  Form,
  formOf,
  FramedPage,
  html,
  Page,
  Redirect,
  respondToForm,
  type Field,
  type PageRequest,
  type RejectedForm,
} from '../../extension.js';
import { NewAccountDto } from './people.dto.js';

const RULE = { operator: true, founders: true } as const;

/** `/ui/new-organization`: creates an organization that the person owns, as `POST /accounts` does. */
@Controller('ui/new-organization')
export class NewOrganizationController {
  constructor(private readonly accounts: Accounts) {}

  @Get()
  @Page('accounts:read', RULE)
  show(): FramedPage {
    return this.render();
  }

  @Post('create')
  @Form('accounts:write', RULE)
  create(@CurrentPage() { person, form }: PageRequest) {
    const create = async () => {
      const { name } = await checkedBody(NewAccountDto, { name: form.get('name') });
      const { id } = await this.accounts.create(person, { name, kind: 'organization' });
      if (person.isOperator) await this.accounts.setMember(person, id, person.accountId, 'owner');
      return new Redirect(`ui/o/${encodeURIComponent(name)}`);
    };
    return respondToForm('create', form, create, (rejected) => Promise.resolve(this.render(rejected)));
  }

  private render(rejected?: RejectedForm): FramedPage {
    const name: Field = { name: 'name', label: 'Name', attributes: html`maxlength="255" autocomplete="off" required` };
    return new FramedPage((token, root) => {
      const view = { token, address: `${root}ui/new-organization`, rejected };
      const form = formOf(view, 'create', [name], button('Create', { look: 'primary' }));
      return {
        title: 'New organization',
        crumbs: [['Account', 'me'], ['New organization']],
        head: { lead: 'An organization owns namespaces together. You are its first owner, and invite its members.' },
        body: card('new', 'Create an organization', form),
      };
    });
  }
}
