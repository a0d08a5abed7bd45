import { Controller, Get } from '@nestjs/common';
import {
  checkedBody,
  CurrentAccountId,
  CurrentPage,
  DomainError,
  FramedPage,
  Page,
  type PageRequest,
} from '../../extension.js';
import { ChangesQueryDto } from './change.dto.js';
import { changesPage, type ChangeFilters } from './changes.page.js';
import { ChangesService } from './changes.service.js';

const NAMES = ['since', 'actor', 'credential', 'target'] as const;

/** `/ui/m/changes/{accountId}`: the changes of an account, or of an organization for its owners. */
@Controller('ui/m/changes')
export class ChangesPageController {
  constructor(private readonly changesService: ChangesService) {}

  @Get(':accountId')
  @Page('accounts:read', { account: 'accountId', may: 'own' })
  async show(@CurrentPage() { query }: PageRequest, @CurrentAccountId() accountId: string): Promise<FramedPage> {
    const filters: ChangeFilters = Object.fromEntries(
      NAMES.flatMap((name) => (typeof query[name] === 'string' && query[name] !== '' ? [[name, query[name]]] : [])),
    );
    const { cursor } = query;
    const body = { ...filters, ...(typeof cursor === 'string' && { cursor }) };
    try {
      const page = await this.changesService.list(accountId, await checkedBody(ChangesQueryDto, body));
      return new FramedPage(() => changesPage(accountId, filters, page, null));
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      const empty = { changes: [], nextCursor: null };
      return new FramedPage(() => changesPage(accountId, filters, empty, error.message), 400);
    }
  }
}
