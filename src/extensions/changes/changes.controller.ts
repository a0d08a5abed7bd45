import { Controller, Get, Query, Res } from '@nestjs/common';
import { ApiExtraModels, ApiOkResponse, ApiParam, ApiTags, getSchemaPath } from '#api-docs';
import type { Response } from 'express';
import { Access, ApiErrors, CurrentAccountId, UuidOr404 } from '../../extension.js';
import { ChangeListDto, ChangesQueryDto } from './change.dto.js';
import { ChangesService, toCsv } from './changes.service.js';

/** The record of changes. */
@ApiTags('Accounts and API keys')
@ApiExtraModels(ChangeListDto)
@Controller('accounts/:accountId/changes')
export class ChangesController {
  constructor(private readonly changesService: ChangesService) {}

  /**
   * List changes. Returns those of the account, of its namespaces, servers and connections, and those that it made elsewhere, newest
   * first, of the last 90 days: keys, passwords, logins, members, invitations, grants, limits, namespaces, servers, names of secrets,
   * releases and connections. Each has its actor, the credential, and the values before and after. Only an owner reads those of
   * an organization.
   */
  @Get()
  @ApiParam({ name: 'accountId', description: "The account's id, or `me` for your own.", example: 'me' })
  @Access('accounts:read', { account: 'accountId', may: 'own' })
  @ApiOkResponse({
    content: {
      'application/json': { schema: { $ref: getSchemaPath(ChangeListDto) } },
      'text/csv': { schema: { type: 'string' } },
    },
  })
  @ApiErrors(400, 403, { status: 404, message: 'Account not found' })
  async list(
    @CurrentAccountId(UuidOr404('Account not found')) accountId: string,
    @Query() query: ChangesQueryDto,
    @Res({ passthrough: true }) response: Response,
  ): Promise<ChangeListDto | string> {
    const page = await this.changesService.list(accountId, query);
    if (query.format !== 'csv') return page;
    if (page.nextCursor !== null) response.set('Slipway-Next-Cursor', page.nextCursor);
    response.type('text/csv');
    return toCsv(page.changes);
  }
}
