/**
 * The page on which a user decides about a client: `/consent/{uid}`. A cookie of the authorization server binds the request to the browser;
 * the form has a token, and names the account that saw the page. A GET decides nothing, except for a remembered consent to the same request
 * with an https redirect URI: it redirects the browser immediately.
 */
import { createHash, randomUUID } from 'node:crypto';
import { Controller, Get, Post, Req, Res } from '@nestjs/common';
import { ApiExcludeController } from '#api-docs';
import type { Request, Response } from 'express';
import { Env } from '../../config/env.js';
import { onViolation } from '../../platform/database/postgres-errors.js';
import { PlainPage, Redirect, RedirectAway } from '../../platform/pages/frame.js';
import { PlainPageError } from '../../platform/pages/page.js';
import { GrantsService } from '../grants/grants.service.js';
import { qualifiedNameOf } from '../targets/target.types.js';
import { TargetsService } from '../targets/targets.service.js';
import { CurrentPage, PublicPage, type PublicPageRequest } from '../auth/access.decorator.js';
import { AccessService } from '../auth/access.service.js';
import type { SessionCaller } from '../auth/access.types.js';
import { AccessRequestsService } from '../grants/access-requests.service.js';
import { SessionsService } from '../people/sessions.service.js';
import { SignInService } from '../people/sign-in.service.js';
import { AuthorizationServerRepository, type NewGrant } from './authorization-server.repository.js';
import { AuthorizationServerService, GRANT_SECONDS } from './authorization-server.service.js';
import { isExactHttps, redirectKey } from './client-metadata.js';
import { askedPage, consentPage, nothingHerePage } from './consent-page.js';
import { endpointOfResource } from './protected-resource.js';
import { TokensService } from './tokens.service.js';

function expired(): PlainPageError {
  return new PlainPageError(
    'gone',
    'consent',
    'This login is no longer valid',
    'It was finished, took longer than an hour, or was started in another browser. Go back to your app and connect again.',
  );
}

function nothingHere(): PlainPageError {
  return new PlainPageError(
    'not_found',
    'consent',
    'Nothing to authorize',
    'The connection or server no longer exists, or your account can no longer use it. Check the address in your app.',
  );
}

/** The pending request, which is read again for each request of the browser. */
type Asked = Awaited<ReturnType<ConsentController['readPending']>>;

@ApiExcludeController()
@PublicPage()
@Controller('consent')
export class ConsentController {
  constructor(
    private readonly authorizationServerService: AuthorizationServerService,
    private readonly authorizationServerRepository: AuthorizationServerRepository,
    private readonly tokensService: TokensService,
    private readonly accessService: AccessService,
    private readonly targetsService: TargetsService,
    private readonly grantsService: GrantsService,
    private readonly sessionsService: SessionsService,
    private readonly signInService: SignInService,
    private readonly accessRequestsService: AccessRequestsService,
    private readonly env: Env,
  ) {}

  @Get(':uid')
  async show(
    @CurrentPage() page: PublicPageRequest,
    @Req() request: Request,
    @Res({ passthrough: true }) response: Response,
  ): Promise<PlainPage | Redirect> {
    const flow = await this.readPending(request, response);
    const person = await this.sessionsService.current(page.client);
    const { client, resource, prompts, redirectUri } = flow;
    const action = page.path;
    if (!person) {
      return this.signInService.page({ next: action, action: '../login', app: client.name });
    }
    const match = await this.findTarget(flow, person);
    const { accountId, accountName: personName } = person;
    const form = { action, accountId, personName };
    if (!match?.isOpen) {
      const view = { ...form, clientName: client.name, resource, restricted: match && qualifiedNameOf(match.target) };
      return new PlainPage((token) => nothingHerePage(this.env, { ...view, formToken: token() }));
    }
    const grant = this.grantOf(page, flow, person, match);
    const mayRemember = isExactHttps(redirectUri);
    const isAsked = prompts.some((prompt) => prompt !== 'none');
    if (!isAsked && mayRemember && (await this.authorizationServerRepository.isRemembered(grant))) {
      return this.allow(request, response, { ...grant, isRemembered: true });
    }
    const view = { ...form, client, target: match.target, redirectUri, mayRemember };
    return new PlainPage((token) => consentPage(this.env, { ...view, formToken: token() }));
  }

  @Post(':uid')
  async decide(
    @CurrentPage() page: PublicPageRequest,
    @Req() request: Request,
    @Res({ passthrough: true }) response: Response,
  ): Promise<PlainPage | Redirect> {
    const { form, client, path } = page;
    const flow = await this.readPending(request, response);
    const answer = form.get('answer');
    if (answer === 'other') return new RedirectAway(path, [await this.sessionsService.signOut(client)]);
    if (answer === 'deny') {
      const refusal = { error: 'access_denied', error_description: 'the person did not allow it' };
      return new RedirectAway(await this.authorizationServerService.finish(request, response, refusal));
    }
    const person = await this.sessionsService.current(client);
    if (!person) return new RedirectAway(path);
    // eslint-disable-next-line no-restricted-syntax -- The page was shown to this user.
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
      const view = { clientName: flow.client.name, action: path };
      return new PlainPage((token) => askedPage(this.env, { ...view, formToken: token() }));
    }
    if (answer !== 'allow' || !match?.isOpen) throw nothingHere();
    const isRemembered = form.get('remember') === 'yes' && isExactHttps(flow.redirectUri);
    return this.allow(request, response, { ...this.grantOf(page, flow, person, match), isRemembered });
  }

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

  /** `isOpen` is true if the user can authorize a client for the target; null if the target does not exist or is hidden from the user. */
  private async findTarget({ resource }: Asked, person: SessionCaller) {
    const endpoint = endpointOfResource(resource, this.env);
    const target = endpoint && (await this.targetsService.find(endpoint));
    if (!target) return null;
    const right = await this.grantsService.findCurrent(person.accountId, target);
    const isOpen = this.accessService.isAllowed(person, 'call', { ...target, granted: right?.level });
    return isOpen || target.visibility === 'restricted' ? { target, rightId: right?.id ?? null, isOpen } : null;
  }

  private grantOf(
    page: PublicPageRequest,
    { client, redirectUri, resource }: Asked,
    { accountId, rootKeyId, loginsEpoch }: SessionCaller,
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
      keyId: rootKeyId ?? null,
      loginsEpoch,
      address: page.client.address,
      isRemembered: false,
      lifeSeconds: GRANT_SECONDS,
    };
  }

  private async allow(request: Request, response: Response, grant: NewGrant): Promise<Redirect> {
    const ended = await this.authorizationServerRepository
      .saveGrant(grant)
      .catch(onViolation({ foreignKey: nothingHere }));
    this.tokensService.announceRevocation(ended);
    const { id: grantId, accountId } = grant;
    const result = { login: { accountId }, consent: { grantId }, select_account: {} };
    return new RedirectAway(await this.authorizationServerService.finish(request, response, result));
  }
}
