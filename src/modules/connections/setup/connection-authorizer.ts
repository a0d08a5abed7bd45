import { Injectable } from '@nestjs/common';
import type { Page } from '../../../platform/pages/page.js';
import { OAuthClientNeededError, OAuthSetupError } from '../../oauth/credentials.errors.js';
import type { BeginAuthorization, CredentialOwner, PreregisteredClient } from '../../oauth/credentials.types.js';
import { SetupPageService } from '../../oauth/setup-page.service.js';
import { formPage } from './connection-setup-page.js';
import type { Connection } from '../core/connection.entity.js';
import { clientFields, typedClient } from './setup-client.js';
import { authorizationForm, clientForm, type Place } from './setup-form.js';

/** What answers a form: a page, or the way to an authorization server, bound to this browser by a cookie for `linkId`. */
export type SetupAnswer = { page: Page; status: number } | { redirect: string; linkId: string };

/** The connection that is to be authorized, and where its form is sent. */
export interface Authorizing {
  row: Pick<Connection, 'id' | 'statusChallenges'>;
  place: Place;
  action: string;
}

/** The part of the setup page that leads to an authorization server, as us or as a client the person gives. */
@Injectable()
export class ConnectionAuthorizer {
  constructor(private readonly direct: SetupPageService) {}

  /** What is to be authorized and where, or a form for what must be given first. */
  async page(authorizing: Authorizing): Promise<Page> {
    const { row, place, action } = authorizing;
    const request = requestFor(authorizing);
    if (!request) return this.noWay(authorizing);
    try {
      const client = await this.direct.clientRequest(ownerOf(row), request);
      if (client.state !== 'unneeded') return formPage(clientForm(place, action, client));
      return await this.direct.page(ownerOf(row), request, action);
    } catch (error) {
      return this.faultPage(authorizing, error);
    }
  }

  /**
   * Leads to the authorization server, as the client of the form if it has one.
   *
   * @param cookie what the browser is known by
   * @throws SetupPageError
   */
  async start(authorizing: Authorizing, body: URLSearchParams, cookie: string): Promise<SetupAnswer> {
    const { row, place, action } = authorizing;
    const request = requestFor(authorizing);
    if (!request) return { page: this.noWay(authorizing), status: 200 };
    try {
      let client: PreregisteredClient | null = null;
      if (body.has(clientFields.id)) {
        const asked = await this.direct.clientRequest(ownerOf(row), request);
        const typed = typedClient(body, asked);
        if ('fault' in typed) {
          return { page: formPage({ ...clientForm(place, action, asked), fault: typed.fault }), status: 422 };
        }
        client = typed.client;
      }
      const { url, linkId } = await this.direct.start(ownerOf(row), request, cookie, client);
      return { redirect: url, linkId };
    } catch (error) {
      return { page: await this.faultPage(authorizing, error), status: 200 };
    }
  }

  /** Code that runs here names no authorization server, but may take a token. */
  private noWay({ place, action }: Authorizing): Page {
    return formPage(authorizationForm(place, action, 'The server refuses to be called without authorization.'));
  }

  /** Why no authorization can begin, with the form for what would help. Rethrows any other error. */
  private async faultPage({ row, place, action }: Authorizing, error: unknown): Promise<Page> {
    if (error instanceof OAuthClientNeededError) {
      const client = await this.direct.clientRequestAt(ownerOf(row), error.issuer);
      return formPage({ ...clientForm(place, action, client), fault: error.message });
    }
    if (!(error instanceof OAuthSetupError)) throw error;
    return formPage(authorizationForm(place, action, error.message));
  }
}

function ownerOf({ id }: Authorizing['row']): CredentialOwner {
  return { kind: 'connection', id };
}

/** Null where there is nobody to ask. */
function requestFor({ row, place: { upstreamUrl, label, adapter } }: Authorizing): BeginAuthorization | null {
  return upstreamUrl === null ? null : { upstreamUrl, challenge: row.statusChallenges, label, adapter };
}
