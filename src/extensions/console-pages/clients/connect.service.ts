/**
 * Connect: the part of a page that connects an MCP client to an address of this service. The person selects the client
 * in a GET form (`?client=cursor`), and receives a snippet or a link. A cookie remembers the selection.
 */
import { Injectable, type OnModuleInit } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import {
  buttonLink,
  card,
  Env,
  html,
  notice,
  partOf,
  pathOfEndpoint,
  readOwnCookie,
  snippet as snippetOf,
  tabs,
  TokenSource,
  type Html,
  type McpEndpoint,
  type OwnCookie,
  type PageRequest,
} from '../../../extension.js';
import { clientNameOf, clients, type Client } from './clients.js';

const COOKIE = 'client';
const COOKIE_SECONDS = 365 * 24 * 60 * 60;

type ChoosingPage = Pick<PageRequest, 'query' | 'cookies'>;

@Injectable()
export class ConnectService implements OnModuleInit {
  private hasLogin!: boolean;

  constructor(
    private readonly env: Env,
    private readonly moduleRef: ModuleRef,
  ) {}

  onModuleInit(): void {
    this.hasLogin = partOf<TokenSource | null>(this.moduleRef, TokenSource) !== null;
  }

  /**
   * @param page its query has the id of a client; otherwise the last selection applies, or the first client that can
   * reach this service
   * @param address the address of the page
   */
  part(endpoint: McpEndpoint, { query, cookies }: ChoosingPage, address: string): Html {
    const chosen = query.client ?? readOwnCookie(this.env, cookies, COOKIE);
    const url = this.env.baseUrl + pathOfEndpoint(endpoint);
    const name =
      endpoint.kind === 'connection'
        ? clientNameOf(endpoint.name)
        : clientNameOf(endpoint.kind === 'server' ? endpoint.slug : endpoint.namespace);
    // Clients that can reach this service come first.
    const usable = clients.toSorted((first, second) => Number(this.isRefused(first)) - Number(this.isRefused(second)));
    const client = usable.find(({ id }) => id === chosen) ?? usable[0];
    const hrefOf = ({ id }: Client) => `${address}?client=${id}#connect`;
    const links = usable.map((each) => [hrefOf(each), each.label] as const);
    return card(
      'connect',
      'Connect',
      html`${snippetOf('address', 'Address for every app', url)}
${tabs('Your app', links, hrefOf(client))}
${this.steps(client, url, name)}`,
    );
  }

  remember({ query }: ChoosingPage): OwnCookie[] {
    const client = clients.find(({ id }) => id === query.client);
    return client ? [{ name: COOKIE, value: client.id, seconds: COOKIE_SECONDS }] : [];
  }

  private isRefused({ isHosted }: Client): boolean {
    return isHosted === true && this.refusalOf() !== null;
  }

  private steps(client: Client, url: string, name: string): Html {
    const { hasLogin } = this;
    const { label, isHosted } = client;
    const refusal = isHosted && this.refusalOf();
    if (refusal) return notice(`${label} cannot be used: ${refusal}`, 'wait');
    const { how, snippet, link, then } = client.setup({ name, url, hasLogin });
    return html`${
      isHosted &&
      html`<p role="note">${label} calls from machines of its vendor: it works only if this service can be reached from the internet.</p>`
    }
${this.env.isLocalOnly && html`<p role="note">Only this machine reaches this service: the app must run here.</p>`}
${link !== undefined && html`<p>${buttonLink(link, `Add it to ${label}`, { look: 'primary' })} or by hand:</p>`}
<p>${how}</p>
${snippet && snippetOf('snippet', label, snippet.text)}
<p class="soft">${then}</p>`;
  }

  private refusalOf(): string | null {
    if (this.env.isLocalOnly)
      return 'it calls from machines of its vendor, and only this machine reaches this service.';
    if (!this.env.baseUrl.startsWith('https:')) return 'it calls https addresses only, and this service has none.';
    return this.hasLogin ? null : 'it sends no API key, and logins by URL are off here.';
  }
}
