import { Module } from '@nestjs/common';
import { defineModule } from '../../extension.js';
import { IdentitiesRepository } from './identities.repository.js';
import { IdentityChecksService } from './identity-checks.service.js';
import { IssuerService } from './issuer.service.js';
import { oidcSettingsSchema, type OidcSettings } from './oidc-settings.js';
import { OidcSignInService } from './oidc-sign-in.service.js';
import { SignInOidcController } from './sign-in-oidc.controller.js';

/** Loaded only with a setting `OIDC_…`. */
@Module({
  controllers: [SignInOidcController],
  providers: [IdentitiesRepository, IdentityChecksService, IssuerService, OidcSignInService],
})
export class SignInOidcModule {}

export const signInOidc = defineModule({
  name: 'oidc',
  module: () => SignInOidcModule,
  settings: oidcSettingsSchema,
  doctor(env, settings) {
    const issuerService = new IssuerService(env, settings as OidcSettings);
    return issuerService.examine().finally(() => issuerService.onApplicationShutdown());
  },
});
