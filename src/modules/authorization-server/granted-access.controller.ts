import { Controller, Get, Post } from '@nestjs/common';
import { isUUID } from 'class-validator';
import { FramedPage, Redirect } from '../../platform/pages/frame.js';
import { CurrentPage, Form, Page, type PageRequest } from '../auth/access.decorator.js';
import { AuthorizationServerRepository } from './authorization-server.repository.js';
import { accessPage } from './consent-page.js';
import { TokensService } from './tokens.service.js';

const PAGE_GRANTS = 100;

@Controller('me/access')
export class GrantedAccessController {
  constructor(
    private readonly authorizationServerRepository: AuthorizationServerRepository,
    private readonly tokensService: TokensService,
  ) {}

  @Get()
  @Page('accounts:read')
  async show(@CurrentPage() { query, person }: PageRequest): Promise<FramedPage> {
    const page = typeof query.page === 'string' && /^[1-9]\d{0,3}$/.test(query.page) ? Number(query.page) : 1;
    const offset = (page - 1) * PAGE_GRANTS;
    const grants = await this.authorizationServerRepository.grantsOf(person.accountId, {
      offset,
      limit: PAGE_GRANTS + 1,
    });
    const view = {
      grants: grants.slice(0, PAGE_GRANTS),
      older: grants.length > PAGE_GRANTS ? page + 1 : null,
      isEnded: query.done === 'ended',
    };
    return new FramedPage((token) => accessPage(view, token));
  }

  @Post()
  @Form('accounts:write')
  async revokeGrant(@CurrentPage() { form, person }: PageRequest): Promise<Redirect> {
    const id = form.get('grant');
    if (isUUID(id) && (await this.authorizationServerRepository.deleteOwnGrant(person, String(id), person.accountId)))
      this.tokensService.announceRevocation([String(id)]);
    return new Redirect('me/access?done=ended');
  }
}
