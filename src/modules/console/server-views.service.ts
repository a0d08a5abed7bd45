import { Injectable } from '@nestjs/common';
import type { SessionCaller } from '../auth/access.types.js';
import { AccessRequestsService } from '../grants/access-requests.service.js';
import { ServerAccessService } from '../servers/server-access.service.js';
import { parseQualifiedName } from '../servers/server.types.js';
import { ServerNotFoundError } from '../servers/servers.errors.js';
import { ServersService } from '../servers/servers.service.js';
import type { ServerView } from './addresses.page.js';
import { OwnNamespacesService } from './own-namespaces.service.js';

/** Reads servers for their pages and cards: each with what the person may do. */
@Injectable()
export class ServerViewsService {
  constructor(
    private readonly serversService: ServersService,
    private readonly serverAccessService: ServerAccessService,
    private readonly accessRequestsService: AccessRequestsService,
    private readonly ownNamespacesService: OwnNamespacesService,
  ) {}

  /** The servers of these qualified names that the caller may find, in this order. */
  async viewsOf(caller: SessionCaller, names: string[]): Promise<ServerView[]> {
    const views: ServerView[] = [];
    const hasNone = (await this.ownNamespacesService.namesOf(caller)).length === 0;
    const newNamespace = hasNone ? this.ownNamespacesService.proposalFor(caller) : null;
    for (const text of names) {
      const name = parseQualifiedName(text);
      const ref = await this.serversService.find(name, caller).catch(noneOf);
      const server = ref && (await this.serversService.detail(name, caller).catch(noneOf));
      if (!ref || !server) continue;
      const mayCall = await this.serverAccessService.mayCallByAccount(caller, ref);
      views.push({ server, slug: ref.slug, mayCall, request: undefined, newNamespace });
    }
    if (views.every(({ mayCall }) => mayCall)) return views;
    const { requests } = await this.accessRequestsService.list(
      { accountId: caller.accountId },
      { page: 1, pageSize: 100 },
    );
    const newest = new Map(requests.toReversed().map((request) => [request.qualifiedName, request]));
    return views.map((view) => ({ ...view, request: newest.get(view.server.qualifiedName) }));
  }
}

function noneOf(error: unknown): null {
  if (error instanceof ServerNotFoundError) return null;
  throw error;
}
