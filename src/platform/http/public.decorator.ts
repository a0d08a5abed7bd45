import { applyDecorators, SetMetadata } from '@nestjs/common';
import { ApiSecurity } from '#api-docs';

/** The value is an access rule, or `'public'`. */
export const ACCESS = 'slipway:access';

/** Declares a route that needs no key. */
export function Public(): MethodDecorator & ClassDecorator {
  return applyDecorators(SetMetadata(ACCESS, 'public'), ApiSecurity({}));
}
