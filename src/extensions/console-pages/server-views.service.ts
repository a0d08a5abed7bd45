import { Injectable } from '@nestjs/common';
import { Grants, OwnNamespacesService, ServerNotFoundError, Servers, type SessionCaller } from '../../extension.js';
import type { ServerView } from './addresses.page.js';

@Injectable()
export class ServerViewsService {
  constructor(
    private readonly servers: Servers,
    private readonly grants: Grants,
    private readonly ownNamespacesService: OwnNamespacesService,
  ) {}

  async viewsOf(caller: SessionCaller, names: string[]): Promise<ServerView[]> {
    const views: ServerView[] = [];
    const hasNone = (await this.ownNamespacesService.namesOf(caller)).length === 0;
    const newNamespace = hasNone ? this.ownNamespacesService.proposalFor(caller) : null;
    for (const name of names) {
      const ref = await this.servers.find(caller, name).catch(noneOf);
      const server = ref && (await this.servers.detail(caller, name).catch(noneOf));
      if (!ref || !server) continue;
      const mayCall = await this.servers.mayCall(caller, name);
      views.push({ server, slug: ref.slug, mayCall, request: undefined, newNamespace });
    }
    if (views.every(({ mayCall }) => mayCall)) return views;
    const { requests } = await this.grants.listOwnRequests(caller, { page: 1, pageSize: 100 });
    const newest = new Map(requests.toReversed().map((request) => [request.qualifiedName, request]));
    return views.map((view) => ({ ...view, request: newest.get(view.server.qualifiedName) }));
  }
}

function noneOf(error: unknown): null {
  if (error instanceof ServerNotFoundError) return null;
  throw error;
}
