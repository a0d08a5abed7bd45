import { Controller, Get, Header } from '@nestjs/common';
import { ApiExcludeController } from '#api-docs';
import { routeNotFound } from '../../platform/errors/domain-error.js';
import { ApiErrors } from '../../platform/http/api-docs.decorators.js';
import { Public } from '../../platform/http/public.decorator.js';
import { OAuthClientsService } from './oauth-clients.service.js';

@ApiExcludeController()
@Public()
@Controller('oauth')
export class ClientDocumentController {
  constructor(private readonly oauthClientsService: OAuthClientsService) {}

  /** Returns the document, whose address is the client id; 404 unless PUBLIC_URL is https. */
  @Get('client.json')
  @Header('cache-control', 'public, max-age=300')
  @ApiErrors(404)
  document(): object {
    const document = this.oauthClientsService.document();
    if (!document) throw routeNotFound('GET', '/oauth/client.json');
    return document;
  }
}
