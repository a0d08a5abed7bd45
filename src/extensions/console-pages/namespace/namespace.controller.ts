/**
 * `/ui/n/{namespace}`: a namespace. A browser that opens its MCP address is redirected here. Managers also see the list
 * of its connections, as `GET /connect/{namespace}` returns it, with the same filters in the address.
 */
import { Controller, Get, Post } from '@nestjs/common';
import {
  Accounts,
  Connections,
  CurrentPage,
  DomainError,
  Form,
  FramedPage,
  html,
  InvalidInputError,
  listedTools,
  namespaceNamed,
  noticeOf,
  ownConnectionsOnly,
  Page,
  Redirect,
  respondToForm,
  type PageRequest,
  type RejectedForm,
} from '../../../extension.js';
import { ConnectService } from '../clients/connect.service.js';
import { accessLinkOf, callsLink } from '../target-access.page.js';
import { filtersIn, metadataIn, queryOf, type ConnectionFilters } from './connection-filters.js';
import { DONE, namespacePage, PAGE_SIZE } from './namespace.page.js';
import { NamespaceRepository } from './namespace.repository.js';

@Controller('ui/n/:namespace')
export class NamespaceController {
  constructor(
    private readonly accounts: Accounts,
    private readonly connections: Connections,
    private readonly connectService: ConnectService,
    private readonly namespaceRepository: NamespaceRepository,
  ) {}

  @Get()
  @Page('connections:read', listedTools)
  async show(@CurrentPage() page: PageRequest): Promise<FramedPage | Redirect> {
    const added = metadataIn(page.query.metadata);
    if (added === null) return this.render(page);
    const filters = filtersIn(page.query);
    const keptFilters = filters.metadata.filter(({ key }) => !added.some((filter) => filter.key === key));
    return new Redirect(`${addressOf(page)}?${queryOf({ ...filters, metadata: [...keptFilters, ...added] })}`);
  }

  @Post('delete')
  @Form('connections:write', ownConnectionsOnly)
  delete(@CurrentPage() page: PageRequest) {
    const { form, person, namespace } = page;
    const work = async () => {
      const id = form.get('id') ?? '';
      if (id === '' || form.get('typed')?.trim() !== id) throw new InvalidInputError('The typed id does not match');
      await this.connections.delete(person, `${namespace.name}/${id}`);
      return new Redirect(`${addressOf(page)}?${queryOf(filtersIn(page.query), { done: 'deleted' })}`);
    };
    return respondToForm('delete', form, work, (rejected) => this.render(page, rejected));
  }

  private async render(page: PageRequest, rejected?: RejectedForm): Promise<FramedPage> {
    const { person, namespace, query } = page;
    const { name } = namespace;
    const target = namespaceNamed(name);
    const isManager = person.grant === undefined || person.grant.level === 'manage';
    const [access, listing] = await Promise.all([
      accessLinkOf(this.accounts, person, target),
      isManager ? this.listingOf(page, filtersIn(query)) : null,
    ]);
    return new FramedPage(
      (token, root) => {
        const address = root + addressOf(page);
        const connect = this.connectService.part(target, page, address);
        const content = namespacePage({ token, rejected, root, address, name, grant: person.grant, connect, listing });
        const notice = noticeOf(query.done, DONE);
        const cookies = this.connectService.remember(page);
        return {
          ...content,
          head: { ...content.head, actions: html`${callsLink(root, name)}${access?.(root)}` },
          notice,
          cookies,
        };
      },
      listing?.problem ? 400 : 200,
    );
  }

  private async listingOf({ person, namespace, query }: PageRequest, filters: ConnectionFilters) {
    const { name, state, metadata } = filters;
    const cursor = typeof query.cursor === 'string' ? query.cursor : undefined;
    const request = { limit: PAGE_SIZE, name, state, cursor };
    const [counts, mayDelete, listed] = await Promise.all([
      this.namespaceRepository.countStates(namespace.id),
      this.accounts.may(person, 'administer', namespaceNamed(namespace.name)),
      this.connections.list(person, namespace.name, request, metadata).catch((error: unknown) => {
        // A cursor of another list, or too many filters.
        if (error instanceof DomainError && error.kind === 'invalid') return error;
        throw error;
      }),
    ]);
    const { connections, nextCursor } = listed instanceof DomainError ? { connections: [], nextCursor: null } : listed;
    const ids = connections.map(({ connectionId }) => connectionId);
    const lastCalls = await this.namespaceRepository.lastCalls(namespace.id, ids);
    const problem = listed instanceof DomainError ? listed.message : null;
    return { filters, cursor, counts, mayDelete, connections, nextCursor, lastCalls, problem };
  }
}

/** Returns the path of the page, relative to the root of the service. */
function addressOf({ namespace: { name } }: PageRequest): string {
  return `ui/n/${encodeURIComponent(name)}`;
}
