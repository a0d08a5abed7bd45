import { Controller, Get, Post } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import {
  CurrentPage,
  Form,
  type PageRequest,
  PublicPage,
  type PublicPageRequest,
  type Redirect,
} from '../../extension.js';
import { OidcSignInService } from './oidc-sign-in.service.js';

/** `/login/oidc`: the way to the issuer and back. */
@ApiExcludeController()
@Controller('login/oidc')
export class SignInOidcController {
  constructor(private readonly oidcSignInService: OidcSignInService) {}

  /** Begins a sign-in. */
  @Post()
  @PublicPage()
  begin(@CurrentPage() { form }: PublicPageRequest): Promise<Redirect> {
    return this.oidcSignInService.begin(form.get('next'), null);
  }

  /** Begins to link an identity to the account of the person. */
  @Post('link')
  @Form('accounts:write')
  link(@CurrentPage() { person }: PageRequest): Promise<Redirect> {
    return this.oidcSignInService.begin(null, person);
  }

  /** Takes the response of the issuer. */
  @Get('callback')
  @PublicPage()
  finish(@CurrentPage() { client, cookies, originalUrl }: PublicPageRequest): Promise<Redirect> {
    return this.oidcSignInService.finish(client, cookies, originalUrl.replace(/^[^?]*/, ''));
  }
}
