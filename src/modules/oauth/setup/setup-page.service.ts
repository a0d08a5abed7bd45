import { Injectable } from '@nestjs/common';
import { Env } from '../../../config/env.js';
import { AuthorizationsService } from '../authorizations.service.js';
import { OAuthClientNeededError, OAuthSetupError } from '../credentials.errors.js';
import type { BeginAuthorization, CredentialOwner, PreregisteredClient } from '../credentials.types.js';
import { OAuthClientsService } from '../oauth-clients.service.js';
import { isForClient, isValue, readClient } from './setup-page.js';
import {
  authorizeView,
  type ClientRequest,
  type FormView,
  type LinkHolder,
  type SetupAnswer,
  type SetupView,
} from './setup.types.js';

export interface AuthorizationOffer {
  owner: CredentialOwner;
  /** Null without an authorization server. */
  request: BeginAuthorization | null;
  form: Omit<FormView, 'kind' | 'reason' | 'client' | 'fault' | 'note'>;
}

/** Stores and registers nothing before the form of the page is submitted. */
@Injectable()
export class SetupPageService {
  constructor(
    private readonly authorizationsService: AuthorizationsService,
    private readonly oauthClientsService: OAuthClientsService,
    private readonly env: Env,
  ) {}

  /** Renders the page; without an authorization server, it shows a form for a client or for values. */
  async view(offer: AuthorizationOffer): Promise<SetupView> {
    const { owner, request, form } = offer;
    if (!request) return this.valuesForm(form);
    try {
      const client = await this.clientRequest(owner, request);
      const target = await this.authorizationsService.preview(owner, request);
      const title = form.title ?? target.resourceName ?? undefined;
      if (client.state !== 'unneeded') return this.clientForm({ ...form, title }, client);
      const { fields: _fields, ...page } = form;
      const { sealedSecret: _secret, scopes: _scopes, ...chosen } = request.oauth ?? {};
      return { ...authorizeView({ ...page, title }, request.upstreamUrl, target), chosen, epoch: form.epoch };
    } catch (error) {
      return this.formAfter(offer, error);
    }
  }

  /**
   * @param cookie identifies the browser, which must return with it
   * @param holder of the link of the page
   * @throws SetupPageError
   */
  async submit(
    offer: AuthorizationOffer,
    body: URLSearchParams,
    cookie: string,
    holder: LinkHolder,
  ): Promise<SetupAnswer> {
    const { owner, request, form } = offer;
    if (!request) return { view: this.valuesForm(form), status: 200 };
    try {
      let client: PreregisteredClient | null = null;
      if (isForClient(body)) {
        const clientRequest = await this.clientRequest(owner, request);
        const submitted = readClient(body, clientRequest);
        if ('fault' in submitted) {
          const view = { ...this.clientForm(form, clientRequest), fault: submitted.fault };
          return { view, status: 422 };
        }
        client = submitted.client;
      }
      return await this.authorizationsService.start(owner, request, client, cookie, holder);
    } catch (error) {
      return { view: await this.formAfter(offer, error), status: 200 };
    }
  }

  /** @param obstacle why no authorization can begin, as a message */
  valuesForm(form: AuthorizationOffer['form'], obstacle?: string): FormView {
    const reason =
      obstacle === undefined
        ? 'It requires a key or token.'
        : `It wants you to sign in, and ${this.env.appName} cannot lead you there.`;
    return {
      ...form,
      kind: 'form',
      reason: `${reason} If you have a key or token for it, enter it here.`,
      client: null,
      fault: null,
      note: obstacle,
    };
  }

  hasValues(body: URLSearchParams): boolean {
    return [...body.keys()].some(isValue);
  }

  /** Returns true if a form is submitted for its client, not for its other values. */
  isForClient(body: URLSearchParams): boolean {
    return isForClient(body);
  }

  /** Returns the form after an error, and rethrows errors that no form can correct. */
  private async formAfter({ owner, form }: AuthorizationOffer, error: unknown): Promise<FormView> {
    if (error instanceof OAuthClientNeededError) {
      const client = await this.clientRequestAt(owner, error.issuer);
      const fault = `${new URL(error.issuer).host} does not know ${this.env.appName} yet.`;
      return { ...this.clientForm(form, client), fault, note: error.message };
    }
    if (!(error instanceof OAuthSetupError)) throw error;
    return this.valuesForm(form, error.message);
  }

  /** Registers nothing, so the authorization server might still turn out to need a client. @throws OAuthSetupError */
  private async clientRequest(owner: CredentialOwner, request: BeginAuthorization): Promise<ClientRequest> {
    const { server } = await this.authorizationsService.preview(owner, request);
    const clientRequest = await this.clientRequestAt(owner, server.issuer);
    if (request.oauth?.clientId !== undefined) return { ...clientRequest, state: 'unneeded' };
    const isUnneeded = clientRequest.state === 'lacking' && (await this.oauthClientsService.isObtainable(server));
    return isUnneeded ? { ...clientRequest, state: 'unneeded' } : clientRequest;
  }

  private async clientRequestAt(owner: CredentialOwner, issuer: string): Promise<ClientRequest> {
    const { redirectUri } = this.oauthClientsService;
    const client = await this.oauthClientsService.preregistered(owner, issuer);
    const state = client === null ? 'lacking' : client.refusedAt === null ? 'given' : 'refused';
    return { issuer, redirectUri, state };
  }

  /** Renders the form for a client, for an authorization server that accepts only manually registered clients. */
  private clientForm(form: AuthorizationOffer['form'], client: ClientRequest): FormView {
    const { host } = new URL(client.issuer);
    const wish =
      client.state === 'given'
        ? 'Go on with the client ID that was entered before, or enter another one with its secret'
        : `Enter the client ID and secret that you or an administrator got there for ${this.env.appName}, with the redirect ` +
          'URI below';
    return {
      ...form,
      kind: 'form',
      reason: `It wants you to sign in at ${host}, which accepts only apps that were registered there. ${wish}; or if you have a key or token, enter that.`,
      client,
      fault:
        client.state === 'refused' ? `${host} does not accept the client ID that was entered. Enter it again.` : null,
    };
  }
}
