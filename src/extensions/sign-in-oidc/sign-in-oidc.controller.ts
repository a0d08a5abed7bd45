import { Controller, Get, Post } from '@nestjs/common';
import { ApiExcludeController } from '#api-docs';
import {
  CurrentPage,
  Form,
  type PageRequest,
  PublicPage,
  type PublicPageRequest,
  type Redirect,
} from '../../extension.js';
import { OidcSignInService } from './oidc-sign-in.service.js';

/** `/login/oidc`: redirects to the issuer, and handles its response. */
@ApiExcludeController()
@Controller('login/oidc')
export class SignInOidcController {
  constructor(private readonly oidcSignInService: OidcSignInService) {}

  @Post()
  @PublicPage()
  begin(@CurrentPage() { client, form }: PublicPageRequest): Promise<Redirect> {
    return this.oidcSignInService.begin(client, form.get('next'), null);
  }

  /** Starts linking an identity to the account of the person. */
  @Post('link')
  @Form('accounts:write')
  link(@CurrentPage() { client, person }: PageRequest): Promise<Redirect> {
    return this.oidcSignInService.begin(client, null, person);
  }

  @Post('unlink')
  @Form('accounts:write')
  unlink(@CurrentPage() { person, form }: PageRequest): Promise<Redirect> {
    return this.oidcSignInService.unlink(person, form.get('id') ?? '');
  }

  /** Handles the response of the issuer. */
  @Get('callback')
  @PublicPage()
  finish(@CurrentPage() { client, cookies, originalUrl }: PublicPageRequest): Promise<Redirect> {
    return this.oidcSignInService.finish(client, cookies, originalUrl.replace(/^[^?]*/, ''));
  }
}
