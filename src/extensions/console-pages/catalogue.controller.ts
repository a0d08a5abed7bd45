import { Controller, Get, Optional } from '@nestjs/common';
import {
  CurrentPage,
  FramedPage,
  OwnNamespacesService,
  Page,
  PageParts,
  Servers,
  type PageRequest,
} from '../../extension.js';
import { cataloguePage } from './catalogue.page.js';
import { ServerViewsService } from './server-views.service.js';

/** Maximum length of a query, as in `ServerQueryDto`. */
const QUERY_LENGTH_MAX = 500;

/** `/ui/catalogue`: the servers that a person can find. `?q=` searches, `&page=` pages. */
@Controller('ui/catalogue')
export class CatalogueController {
  constructor(
    private readonly servers: Servers,
    private readonly serverViewsService: ServerViewsService,
    private readonly ownNamespacesService: OwnNamespacesService,
    @Optional() private readonly pageParts?: PageParts,
  ) {}

  @Get()
  @Page('servers:read')
  async show(@CurrentPage() { query, person }: PageRequest): Promise<FramedPage> {
    const { q: sent, page: sentPage } = query;
    const q = typeof sent === 'string' ? sent.replaceAll('\0', '').slice(0, QUERY_LENGTH_MAX).trim() : '';
    const page = /^[1-9]\d{0,8}$/.test(String(sentPage)) ? Number(sentPage) : 1;
    const { servers, pagination } = await this.servers.search(person, { q, page, fields: ['qualifiedName'] });
    const names = servers.flatMap(({ qualifiedName }) => qualifiedName ?? []);
    const views = await this.serverViewsService.viewsOf(person, names);
    const isAuthor = person.isOperator || (await this.ownNamespacesService.namesOf(person)).length > 0;
    const address = `catalogue?${new URLSearchParams({ q }).toString()}`;
    const parts = await this.pageParts?.find('catalogue', { person, target: null, address });
    return new FramedPage((token) =>
      cataloguePage({ q, views, pagination, token, isAuthor, parts: parts?.map((part) => part(token)) }),
    );
  }
}
