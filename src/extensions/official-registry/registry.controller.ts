import { Controller, Get } from '@nestjs/common';
import { CurrentPage, FramedPage, Page, type PageRequest } from '../../extension.js';
import { registryPage } from './registry.page.js';
import { RegistryService, RegistryUnavailableError } from './registry.service.js';

const QUERY_CHARS_MAX = 200;
const CURSOR_CHARS_MAX = 500;

/** `/ui/registry`: servers of the official MCP registry. `?q=` searches names, `&cursor=` continues. Nothing is stored. */
@Controller('ui/registry')
export class RegistryController {
  constructor(private readonly registryService: RegistryService) {}

  @Get()
  @Page('connections:write')
  async show(@CurrentPage() { person, query }: PageRequest): Promise<FramedPage> {
    const text = (value: unknown, charsMax: number) =>
      typeof value === 'string' ? value.replaceAll('\0', '').toWellFormed().slice(0, charsMax).trim() : '';
    const q = text(query.q, QUERY_CHARS_MAX);
    const cursor = text(query.cursor, CURSOR_CHARS_MAX) || null;
    const list = await this.registryService.search(person.accountId, q, cursor).catch((error: unknown) => {
      if (error instanceof RegistryUnavailableError) return null;
      throw error;
    });
    const { host } = this.registryService;
    return new FramedPage((token, root) => registryPage({ token, root, host, q, cursor, list }));
  }
}
