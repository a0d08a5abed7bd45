import { Controller, Get, Header } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import { RouteNotFoundError } from '../../platform/errors/http-errors.js';
import { ApiErrors } from '../../platform/http/api-docs.decorators.js';
import { Public } from '../../platform/http/public.decorator.js';
import { OAuthClients } from './oauth-clients.js';

/** What authorization servers read about us. */
@ApiExcludeController()
@Public()
@Controller('oauth')
export class ClientDocumentController {
  constructor(private readonly clients: OAuthClients) {}

  /** Our client id metadata document. There is none while we are not reached by https: its address is the client id. */
  @Get('client.json')
  @Header('cache-control', 'public, max-age=300')
  @ApiErrors(404)
  document(): object {
    return this.clients.document() ?? notFound();
  }
}

function notFound(): never {
  throw new RouteNotFoundError('GET', '/oauth/client.json');
}
