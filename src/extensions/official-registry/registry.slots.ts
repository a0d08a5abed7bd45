import { Injectable } from '@nestjs/common';
import { buttonLink, html, type Html, PageSlot, type SlotRequest } from '../../extension.js';

@Injectable()
export class RegistrySlots {
  @PageSlot({ place: 'catalogue', title: 'Official registry', rule: 'connections:write' })
  link({ address }: SlotRequest): Html {
    const query = new URL(address, 'http://catalogue.invalid').searchParams.get('q') ?? '';
    const path = query === '' ? 'registry' : `registry?${new URLSearchParams({ q: query }).toString()}`;
    return html`<p>The official MCP registry lists servers that anyone can publish. Add a connection to one of them.</p>
<p>${buttonLink(path, 'Browse the official registry')}</p>`;
  }
}
