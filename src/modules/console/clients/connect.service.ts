/**
 * Connect: the part of a page that leads an MCP client to an address of this service. The person chooses the client in a GET form
 * (`?client=cursor`), and gets what to paste, or a link. It works without scripts.
 */
import { Injectable, type OnModuleInit } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { Env } from '../../../config/env.js';
import { html, type Html } from '../../../platform/pages/html.js';
import { partOf } from '../../../platform/parts.js';
import { TokenSource } from '../../auth/access.types.js';
import { pathOfEndpoint, type McpEndpoint } from '../../auth/mcp-endpoint.access.js';
import { clientNameOf, clients, type Client } from './clients.js';

/** Makes the part. */
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
   * The section with the address and the chosen client.
   *
   * @param chosen the id of a client, as the query has it; anything else chooses none
   * @param address the address of the page
   */
  part(endpoint: McpEndpoint, chosen: unknown, address: string): Html {
    const url = this.env.baseUrl + pathOfEndpoint(endpoint);
    const name =
      endpoint.kind === 'connection'
        ? clientNameOf(endpoint.name)
        : clientNameOf(endpoint.kind === 'server' ? endpoint.slug : endpoint.namespace);
    const client = clients.find(({ id }) => id === chosen);
    return html`<section aria-labelledby="connect"><h2 id="connect">Connect</h2>
<p>The address, for every app: <code id="address">${url}</code>
<button type="button" class="plain" data-copy="address" hidden>Copy</button></p>
<form method="get" action="${address}#connect"><p><label for="client">Your app</label>
<select id="client" name="client">${clients.map(
      ({ id, label }) => html`<option value="${id}"${id === client?.id && html` selected`}>${label}</option>`,
    )}</select></p>
<p><button type="submit">Show how</button></p></form>
${client && this.steps(client, url, name)}
</section>`;
  }

  private steps(client: Client, url: string, name: string): Html {
    const { hasLogin } = this;
    const { label, isHosted } = client;
    const refusal = isHosted && this.refusalOf();
    if (refusal) return html`<p role="note">${label} cannot be used: ${refusal}</p>`;
    const { how, snippet, link, then } = client.setup({ name, url, hasLogin });
    return html`${
      isHosted &&
      html`<p role="note">${label} calls from machines of its vendor: it works only if this service can be reached from the internet.</p>`
    }
${this.env.isLocalOnly && html`<p role="note">Only this machine reaches this service: the app must run here.</p>`}
<h3>${label}</h3>
${link !== undefined && html`<p><a href="${link}">Add it to ${label}</a>, or by hand:</p>`}
<p>${how}</p>
${
  snippet &&
  html`<pre id="snippet">${snippet.text}</pre>
<p><button type="button" class="plain" data-copy="snippet" hidden>Copy</button></p>`
}
<p>${then}</p>`;
  }

  /** The reason why no client reaches this service from the machines of its maker; null where it may. */
  private refusalOf(): string | null {
    if (this.env.isLocalOnly)
      return 'it calls from machines of its vendor, and only this machine reaches this service.';
    if (!this.env.baseUrl.startsWith('https:')) return 'it calls https addresses only, and this service has none.';
    return this.hasLogin ? null : 'it sends no API key, and logins by URL are off here.';
  }
}
