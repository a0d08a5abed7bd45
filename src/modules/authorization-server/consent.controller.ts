/**
 * The page on which a person decides about a client: `/consent/{uid}`. Who is not signed in does so there first, on the form
 * of `/login`. The interaction is bound to the browser by a cookie of the authorization server; the form has a token, and names
 * the account that saw the page. Nothing is decided by a GET, but for what the person asked to be remembered: an exact client
 * with an exact https address, for which the browser goes on at once.
 */
import { createHash, randomUUID } from 'node:crypto';
import { Controller, Get, Post, Req, Res, UseFilters } from '@nestjs/common';
import { ApiExcludeController } from '@nestjs/swagger';
import type { Request, Response } from 'express';
import { Env } from '../../config/env.js';
import { clientAddress } from '../../platform/http/client-address.js';
import { onViolation } from '../../platform/database/postgres-errors.js';
import { Public } from '../../platform/http/public.decorator.js';
import { formToken } from '../../platform/pages/form-token.js';
import { requireOwnHost } from '../../platform/pages/own-host.js';
import { PageFormsService } from '../../platform/pages/page-forms.service.js';
import { PageFilter } from '../../platform/pages/page.filter.js';
import { PlainPageError, redirectTo, sendPage } from '../../platform/pages/page.js';
import { GrantsService } from '../grants/grants.service.js';
import { qualifiedNameOf } from '../targets/target.types.js';
import { TargetsService } from '../targets/targets.service.js';
import { AccessService } from '../auth/access.service.js';
import { ApiKeysService } from '../auth/api-keys.service.js';
import { AccessRequestsService } from '../grants/access-requests.service.js';
import type { SignedIn } from '../people/people.types.js';
import { SessionsService } from '../people/sessions.service.js';
import { SignInService } from '../people/sign-in.service.js';
import { AuthorizationServerRepository, type NewGrant } from './authorization-server.repository.js';
import { AuthorizationServerService, GRANT_SECONDS } from './authorization-server.service.js';
import { isExactHttps, redirectKey } from './client-metadata.js';
import { askedPage, consentPage, nothingHerePage } from './consent-page.js';
import { endpointOfResource } from './protected-resource.js';
import { TokensService } from './tokens.service.js';

/** No authorization of this browser waits for a decision. */
function expired(): PlainPageError {
  return new PlainPageError(
    'gone',
    'consent',
    'This login is no longer valid',
    'It was finished, took longer than an hour, or was started in another browser. Go back to your app and connect again.',
  );
}

/** The target, the person's right to it or the key of their session ended. */
function nothingHere(): PlainPageError {
  return new PlainPageError(
    'not_found',
    'consent',
    'Nothing to authorize',
    'The connection or server no longer exists, or your account can no longer use it. Check the address in your app.',
  );
}

/** What a client asks for, read again for each request of a browser. */
type Asked = Awaited<ReturnType<ConsentController['readPending']>>;

/** Shows what a client asks for, and takes the decision. */
@ApiExcludeController()
@Public()
@UseFilters(PageFilter)
@Controller('consent')
export class ConsentController {
  constructor(
    private readonly authorizationServerService: AuthorizationServerService,
    private readonly authorizationServerRepository: AuthorizationServerRepository,
    private readonly tokensService: TokensService,
    private readonly accessService: AccessService,
    private readonly apiKeysService: ApiKeysService,
    private readonly targetsService: TargetsService,
    private readonly grantsService: GrantsService,
    private readonly sessionsService: SessionsService,
    private readonly signInService: SignInService,
    private readonly accessRequestsService: AccessRequestsService,
    private readonly pageFormsService: PageFormsService,
    private readonly env: Env,
  ) {}

  @Get(':uid')
  async show(@Req() request: Request, @Res() response: Response): Promise<void> {
    requireOwnHost(request, this.env);
    const flow = await this.readPending(request, response);
    const person = await this.sessionsService.current(request);
    const { client, resource, prompts } = flow;
    if (!person) {
      const form = { next: request.path, name: '', fault: null, action: '../login', app: client.name };
      return this.signInService.show(request, response, form);
    }
    const match = await this.findTarget(flow, person);
    const form = {
      action: request.path,
      formToken: formToken(this.env, request, response),
      accountId: person.accountId,
    };
    const personName = person.accountName;
    if (!match?.isOpen) {
      const restricted = match && qualifiedNameOf(match.target);
      const clientName = client.name;
      return sendPage(response, nothingHerePage(this.env, { ...form, personName, clientName, resource, restricted }));
    }
    const { target } = match;
    const grant = this.grantOf(request, flow, person, match);
    const isAsked = prompts.some((prompt) => prompt !== 'none');
    if (!isAsked && isExactHttps(flow.redirectUri) && (await this.authorizationServerRepository.isRemembered(grant))) {
      return this.allow(request, response, { ...grant, isRemembered: true });
    }
    const { redirectUri } = flow;
    const mayRemember = isExactHttps(redirectUri);
    sendPage(response, consentPage(this.env, { ...form, personName, client, target, redirectUri, mayRemember }));
  }

  @Post(':uid')
  async decide(@Req() request: Request, @Res() response: Response): Promise<void> {
    const form = await this.pageFormsService.read(request, response);
    const flow = await this.readPending(request, response);
    const answer = form.get('answer');
    if (answer === 'other') {
      await this.sessionsService.signOut(request, response);
      return redirectTo(response, request.path);
    }
    if (answer === 'deny') {
      const refusal = { error: 'access_denied', error_description: 'the person did not allow it' };
      return redirectTo(response, await this.authorizationServerService.finish(request, response, refusal));
    }
    const person = await this.sessionsService.current(request);
    if (!person) return redirectTo(response, request.path);
    // eslint-disable-next-line no-restricted-syntax -- The page was shown to this person.
    if (form.get('account') !== person.accountId) {
      throw new PlainPageError(
        'conflict',
        'consent',
        'Somebody else is signed in now',
        'The page was shown to another account. Go back to your app and connect again.',
      );
    }
    const match = await this.findTarget(flow, person);
    if (answer === 'ask' && match && !match.isOpen) {
      const text = (form.get('text') ?? '').slice(0, 500).replace(/[\p{Cc}\p{Cs}]/gu, ' ');
      await this.accessRequestsService.requestAccess(person, match.target, text);
      const view = { clientName: flow.client.name, action: request.path };
      return sendPage(response, askedPage(this.env, { ...view, formToken: formToken(this.env, request, response) }));
    }
    if (answer !== 'allow' || !match?.isOpen) throw nothingHere();
    const isRemembered = form.get('remember') === 'yes' && isExactHttps(flow.redirectUri);
    await this.allow(request, response, { ...this.grantOf(request, flow, person, match), isRemembered });
  }

  /** @throws PageError when no authorization of this browser waits */
  private async readPending(request: Request, response: Response) {
    const interaction = await this.authorizationServerService.interaction(request, response);
    if (!interaction || interaction.uid !== request.params.uid) throw expired();
    const {
      client_id: clientId,
      redirect_uri: redirectUri,
      resource,
      prompt,
    } = interaction.params as Record<string, string>;
    const client = await this.authorizationServerService.client(clientId);
    if (!client) throw expired();
    return { client, redirectUri, resource: String(resource), prompts: prompt === undefined ? [] : prompt.split(' ') };
  }

  /**
   * The target, with `isOpen` true if the person may let a client in; null where there is none. One that the person may not
   * find looks like a missing one.
   */
  private async findTarget({ resource }: Asked, { accountId }: SignedIn) {
    const endpoint = endpointOfResource(resource, this.env);
    const target = endpoint && (await this.targetsService.find(endpoint));
    const caller = await this.apiKeysService.callerOf(accountId);
    if (!target || !caller) return null;
    const right = await this.grantsService.findCurrent(accountId, target);
    const isOpen = this.accessService.isAllowed(caller, 'call', { ...target, granted: right?.level });
    return isOpen || target.visibility === 'restricted' ? { target, rightId: right?.id ?? null, isOpen } : null;
  }

  private grantOf(
    request: Request,
    { client, redirectUri, resource }: Asked,
    { accountId, keyId, loginsEpoch }: SignedIn,
    { target, rightId }: Pick<NewGrant, 'target' | 'rightId'>,
  ): NewGrant {
    return {
      id: randomUUID(),
      accountId,
      clientId: client.id,
      clientName: client.name,
      clientHost: client.host,
      redirectKey: redirectKey(redirectUri),
      redirectsHash: createHash('sha256').update(JSON.stringify(client.redirectUris.toSorted())).digest(),
      resource,
      target,
      rightId,
      keyId,
      loginsEpoch,
      address: clientAddress(request, this.env.trustProxy),
      isRemembered: false,
      lifeSeconds: GRANT_SECONDS,
    };
  }

  private async allow(request: Request, response: Response, grant: NewGrant): Promise<void> {
    const ended = await this.authorizationServerRepository
      .saveGrant(grant)
      .catch(onViolation({ foreignKey: nothingHere }));
    this.tokensService.announceRevocation(ended);
    const { id: grantId, accountId } = grant;
    const result = { login: { accountId }, consent: { grantId }, select_account: {} };
    redirectTo(response, await this.authorizationServerService.finish(request, response, result));
  }
}
