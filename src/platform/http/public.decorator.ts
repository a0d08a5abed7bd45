import { applyDecorators, SetMetadata } from '@nestjs/common';
import { ApiSecurity } from '@nestjs/swagger';

/** Metadata key of a route's declaration: an access rule, or `'public'`. */
export const ACCESS = 'slipway:access';

/** Declares a route that needs no key. */
export function Public(): MethodDecorator & ClassDecorator {
  return applyDecorators(SetMetadata(ACCESS, 'public'), ApiSecurity({}));
}
