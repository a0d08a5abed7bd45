import { applyDecorators, createParamDecorator, SetMetadata, type ExecutionContext } from '@nestjs/common';
import { ApiBearerAuth, ApiExtension } from '@nestjs/swagger';
import { ACCESS } from '../../platform/http/public.decorator.js';
import type { AccessRule, Caller, Grant, OwnedNamespace, Scope } from './access.types.js';

/** A request after the guard. */
export interface GrantedRequest {
  grant: Grant;
}

/** Declares who may use a route. The start fails for a route without this or `@Public()`. */
export function Access(scope: Scope, rule: Omit<AccessRule, 'scope'> = {}): MethodDecorator {
  return applyDecorators(
    SetMetadata(ACCESS, { scope, ...rule } satisfies AccessRule),
    ApiBearerAuth('apiKey'),
    ApiExtension('x-scope', scope),
  );
}

function grantOf(context: ExecutionContext): Grant {
  return context.switchToHttp().getRequest<GrantedRequest>().grant;
}

/** The caller that {@link Access} let in. */
export const CurrentCaller = createParamDecorator((_: unknown, context: ExecutionContext): Caller => {
  return grantOf(context).caller;
});

/** The namespace of an `owner` rule. */
export const CurrentNamespace = createParamDecorator((_: unknown, context: ExecutionContext): OwnedNamespace => {
  const { namespace } = grantOf(context);
  if (!namespace) throw new Error('@CurrentNamespace() needs an owner rule');
  return namespace;
});

/** The account of an `account` rule, with `me` resolved. */
export const CurrentAccountId = createParamDecorator((_: unknown, context: ExecutionContext): string => {
  const { accountId } = grantOf(context);
  if (accountId === undefined) throw new Error('@CurrentAccountId() needs an account rule');
  return accountId;
});
