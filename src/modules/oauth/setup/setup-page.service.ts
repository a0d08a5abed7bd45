import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { AuthorizationsService, type AuthorizationPreview } from '../authorizations.service.js';
import { OAuthClientNeededError, OAuthSetupError } from '../credentials.errors.js';
import type { BeginAuthorization, CredentialOwner, PreregisteredClient } from '../credentials.types.js';
import { OAuthClientsService } from '../oauth-clients.service.js';
import { AuthorizationFlowService, participantsOf } from './authorization-flow.service.js';
import { isForClient, readClient } from './setup-page.js';
import type { ClientRequest, FormView, SetupAnswer, SetupView } from './setup.types.js';

/** Cache lifetime of a discovery: people reload pages, and programs follow links before people do. */
const PREVIEW_CACHED_MS = 60_000;
const PREVIEWS_CACHED_MAX = 1_000;

/** An owner that needs authorization, and the form for values with which it may do without. */
export interface AuthorizationSubject {
  owner: CredentialOwner;
  /** Null where there is no authorization server to ask. */
  request: BeginAuthorization | null;
  form: Omit<FormView, 'kind' | 'reason' | 'client' | 'fault'>;
}

/** The setup page of an owner that needs authorization. Nothing is stored or registered before its form is submitted. */
@Injectable()
export class SetupPageService {
  private readonly previews = new LRUCache<string, AuthorizationPreview>({
    max: PREVIEWS_CACHED_MAX,
    ttl: PREVIEW_CACHED_MS,
  });

  constructor(
    private readonly authorizations: AuthorizationsService,
    private readonly clients: OAuthClientsService,
    private readonly flow: AuthorizationFlowService,
  ) {}

  /** The page in front of the authorization server, or a form for a client or for values where there is no such way. */
  async view(subject: AuthorizationSubject): Promise<SetupView> {
    const { owner, request, form } = subject;
    if (!request) return this.valuesForm(form, NO_AUTHORIZATION_SERVER);
    try {
      const client = await this.clientRequest(owner, request);
      if (client.state !== 'unneeded') return clientForm(form, client);
      const { server, scopes } = await this.preview(owner, request);
      const { fields: _fields, ...page } = form;
      return {
        ...page,
        kind: 'authorize',
        label: request.label,
        ...participantsOf(request.upstreamUrl, server),
        scopes: scopes?.split(' ') ?? [],
      };
    } catch (error) {
      return this.formAfter(subject, error);
    }
  }

  /**
   * Begins an authorization as the submitted client, if there is one, and redirects to the authorization server.
   *
   * @param cookie identifies the browser, which must come back with it
   * @throws SetupPageError
   */
  async submit(subject: AuthorizationSubject, body: URLSearchParams, cookie: string): Promise<SetupAnswer> {
    const { owner, request, form } = subject;
    if (!request) return { view: this.valuesForm(form, NO_AUTHORIZATION_SERVER), status: 200 };
    try {
      let client: PreregisteredClient | null = null;
      if (isForClient(body)) {
        const wanted = await this.clientRequest(owner, request);
        const submitted = readClient(body, wanted);
        if ('fault' in submitted) return { view: { ...clientForm(form, wanted), fault: submitted.fault }, status: 422 };
        client = submitted.client;
      }
      const { id } = await this.authorizations.open(owner, request, client);
      return { redirect: await this.flow.start(id, cookie), linkId: id };
    } catch (error) {
      return { view: await this.formAfter(subject, error), status: 200 };
    }
  }

  /** The form for values where authorization is needed. @param obstacle why none can be begun, in a sentence */
  valuesForm(form: AuthorizationSubject['form'], obstacle: string | null = null): FormView {
    const reason = 'Its server wants authorization';
    return {
      ...form,
      kind: 'form',
      reason:
        (obstacle === null ? `${reason}.` : `${reason}, and Slipway cannot ask for it there: ${obstacle}`) +
        ' If you have a key or token, give it here.',
      client: null,
      fault: null,
    };
  }

  /** True if a form is submitted for its client, not for its other values. */
  isForClient(body: URLSearchParams): boolean {
    return isForClient(body);
  }

  /** The form that helps after an authorization could not be begun. Rethrows any other error. */
  private async formAfter({ owner, form }: AuthorizationSubject, error: unknown): Promise<FormView> {
    if (error instanceof OAuthClientNeededError) {
      return { ...clientForm(form, await this.clientRequestAt(owner, error.issuer)), fault: error.message };
    }
    if (!(error instanceof OAuthSetupError)) throw error;
    return this.valuesForm(form, error.message);
  }

  /** Registers nothing, so the authorization server may still turn out to need a client. @throws OAuthSetupError */
  private async clientRequest(owner: CredentialOwner, request: BeginAuthorization): Promise<ClientRequest> {
    const { server } = await this.preview(owner, request);
    const wanted = await this.clientRequestAt(owner, server.issuer);
    const isUnneeded = wanted.state === 'lacking' && (await this.clients.isObtainable(server));
    return isUnneeded ? { ...wanted, state: 'unneeded' } : wanted;
  }

  private async clientRequestAt(owner: CredentialOwner, issuer: string): Promise<ClientRequest> {
    const { redirectUri } = this.clients;
    const client = await this.clients.preregistered(owner, issuer);
    const state = client === null ? 'lacking' : client.refusedAt === null ? 'given' : 'refused';
    return { issuer, redirectUri, state };
  }

  private async preview(owner: CredentialOwner, request: BeginAuthorization): Promise<AuthorizationPreview> {
    const key = JSON.stringify([owner, request]);
    let preview = this.previews.get(key);
    if (!preview) {
      preview = await this.authorizations.preview(owner, request);
      this.previews.set(key, preview);
    }
    return preview;
  }
}

/** For code that runs here and has no auth adapter. */
const NO_AUTHORIZATION_SERVER = 'The server refuses to be called without authorization.';

const CLIENT_LACKS =
  'Slipway cannot register itself there. Register a client there by hand, and give its ID and secret here; ' +
  'or if you have a key or token, give that.';

const clientReasons: Record<ClientRequest['state'], string> = {
  unneeded: CLIENT_LACKS,
  lacking: CLIENT_LACKS,
  refused: 'Give the ID and secret of a client that is registered there; or if you have a key or token, give that.',
  given: 'Go on with the client that was given, or give another one; or if you have a key or token, give that.',
};

/** The form for an authorization server that takes only clients that were registered by hand. */
function clientForm(form: AuthorizationSubject['form'], client: ClientRequest): FormView {
  const { host } = new URL(client.issuer);
  return {
    ...form,
    kind: 'form',
    reason: `Its server wants authorization by ${host}. ${clientReasons[client.state]}`,
    client,
    fault: client.state === 'refused' ? `${host} does not accept the client that was given. Give it anew.` : null,
  };
}
