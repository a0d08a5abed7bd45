/**
 * Admits requests by their key, limits and rights, for the guard, the fast path and the WebSocket handshakes of uplinks, so every rejection
 * passes through {@link Admission.refuse}.
 *
 * Fails: 401 without a valid key (429 after too many attempts), 429 beyond the limits of the key, the account or the address, 403 and 404
 * by the rule of the route.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import { AccessService } from './access.service.js';
import { OpenRequests } from '../../platform/http/open-requests.js';
import { actionOf, type AccessRule, type Caller, type Grant } from './access.types.js';
import type { Right } from './open-rights.service.js';
import { RequestLimits } from './request-limits.service.js';

/** A request whose path no route has has no `params`. */
type RoutedRequest = IncomingMessage & { params?: Record<string, string | string[]> };

@Injectable()
export class Admission {
  constructor(
    private readonly accessService: AccessService,
    private readonly requestLimits: RequestLimits,
    private readonly openRequests: OpenRequests<Right>,
  ) {}

  /**
   * Returns no promise while its key and the owner of its target are cached.
   *
   * @param response gets the `RateLimit` headers; null for a WebSocket handshake
   * @throws DomainError synchronously or by the promise: UnauthenticatedError, TooManyError, and those of `AccessService.authorize`
   */
  admit(request: RoutedRequest, response: ServerResponse | null, rule: AccessRule): Grant | Promise<Grant> {
    try {
      const caller = this.accessService.authenticate(request, rule);
      const grant =
        caller instanceof Promise
          ? caller.then((resolvedCaller) => this.authorize(resolvedCaller, request, response, rule))
          : this.authorize(caller, request, response, rule);
      return grant instanceof Promise ? grant.catch((error) => this.refuse(error, request, response)) : grant;
    } catch (error) {
      return this.refuse(error, request, response);
    }
  }

  /** Removes an admitted request that ends without its response closing (`OpenRequests`). */
  removeRequest(request: IncomingMessage): void {
    this.openRequests.remove(request);
  }

  private authorize(
    caller: Caller,
    request: RoutedRequest,
    response: ServerResponse | null,
    rule: AccessRule,
  ): Grant | Promise<Grant> {
    this.requestLimits.admit(request, caller, response);
    const { params = {} } = request;
    const target = {
      owner: rule.owner === undefined ? undefined : String(params[rule.owner]),
      account: rule.account === undefined ? undefined : String(params[rule.account]),
      connectionId: params.connectionId as string | undefined,
    };
    const grant = this.accessService.authorize(caller, rule, target);
    // Other requests that take long are not watched: a deletion, for example, can remove its own right.
    if (request.method !== 'GET' && actionOf(rule.scope) !== 'call') return grant;
    const open = (resolvedGrant: Grant) => {
      this.openRequests.add(request, response, { caller, rule, target, by: resolvedGrant.caller.grant });
      return resolvedGrant;
    };
    return grant instanceof Promise ? grant.then(open) : open(grant);
  }

  private async refuse(error: unknown, request: IncomingMessage, response: ServerResponse | null): Promise<never> {
    throw await this.requestLimits.refusal(error, request, response);
  }
}
