import { Injectable } from '@nestjs/common';
import { Accounts, type Caller, NotFoundError, ServerNotFoundError, Servers } from '../../extension.js';
import { AuthorPagesRepository } from './author-pages.repository.js';

export type ServerDetail = Awaited<ReturnType<Servers['detail']>>;

export interface OwnServer {
  slug: string;
  name: string;
  detail: ServerDetail;
  mayManage: boolean;
}

@Injectable()
export class OwnServersService {
  constructor(
    private readonly authorPagesRepository: AuthorPagesRepository,
    private readonly servers: Servers,
    private readonly accounts: Accounts,
  ) {}

  /** Returns the server at an address. @throws ServerNotFoundError for one that is hidden from the caller */
  async open(caller: Caller, slug: string): Promise<OwnServer> {
    const name = await this.authorPagesRepository.nameAt(slug);
    if (name === null) throw new ServerNotFoundError();
    const detail = await this.servers.detail(caller, name);
    return { slug, name, detail, mayManage: await this.mayManage(caller, name) };
  }

  /** Returns the server at an address. @throws ServerNotFoundError for one that the caller cannot manage */
  async openToManage(caller: Caller, slug: string): Promise<OwnServer> {
    const server = await this.open(caller, slug);
    if (!server.mayManage) throw new ServerNotFoundError();
    return server;
  }

  async findNamed(caller: Caller, name: string): Promise<ServerDetail | null> {
    try {
      return await this.servers.detail(caller, name);
    } catch (error) {
      if (error instanceof NotFoundError) return null;
      throw error;
    }
  }

  mayManage(caller: Caller, qualifiedName: string): Promise<boolean> {
    const [namespace, name = ''] = qualifiedName.split('/');
    return this.accounts.may(caller, 'manage', { kind: 'server', namespace, name });
  }

  accountsOf({ accountId, memberships }: Caller): string[] {
    const publishers = [...memberships].filter(([, role]) => role === 'owner' || role === 'editor');
    return [accountId, ...publishers.map(([id]) => id)];
  }
}
