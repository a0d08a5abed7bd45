import { Injectable } from '@nestjs/common';
import {
  badge,
  buttonLink,
  html,
  type Html,
  list,
  notice,
  PageSlot,
  Releases,
  type SlotRequest,
  timeOf,
  who,
} from '../../extension.js';
import { AuthorPagesRepository, type UnpublishedServer } from './author-pages.repository.js';
import { OwnServersService } from './own-servers.service.js';
import { isFailed, isRunning, labelOf } from './release-states.js';
import { serverTabs } from './server-tabs.js';

const UNPUBLISHED_MAX = 20;

@Injectable()
export class AuthorSlots {
  constructor(
    private readonly authorPagesRepository: AuthorPagesRepository,
    private readonly ownServersService: OwnServersService,
    private readonly releases: Releases,
  ) {}

  @PageSlot({ place: 'needs', rule: 'servers:read' })
  async needs({ person, address }: SlotRequest): Promise<Html | null> {
    const accounts = this.ownServersService.accountsOf(person);
    const servers = await this.authorPagesRepository.unpublished(accounts, UNPUBLISHED_MAX);
    return servers.length === 0 ? null : list(servers.map((server) => needRow(address, server)));
  }

  /** Shows the tabs, and the newest release if it is not the current one. */
  @PageSlot({ place: 'server', rule: 'servers:publish' })
  async overview({ person, target, address }: SlotRequest): Promise<Html | null> {
    if (!target) return null;
    const { releases } = await this.releases.list(person, target.name, { page: 1, pageSize: 1 });
    const [newest] = releases;
    const publish = buttonLink(publishPath(address, target.name), 'Publish a release', { look: 'small' });
    const state = () => {
      if (!newest) return notice(html`Nothing of it is published yet. ${publish}`, 'wait');
      if (newest.isCurrent || !(isFailed(newest.status) || isRunning(newest.status))) return null;
      const link = html`<a href="${address}/releases/${newest.id}">Release ${newest.number}</a>`;
      const [label, look] = labelOf(newest);
      return notice(
        html`<b>${link}: ${label}</b>, ${timeOf(newest.updatedAt)}. ${newest.lastError}`,
        look === 'busy' ? 'wait' : look,
      );
    };
    return html`${serverTabs(address, target.name, '', await this.ownServersService.mayManage(person, target.name))}
${state()}`;
  }
}

export function publishPath(address: string, name: string, source?: string): string {
  const query = new URLSearchParams({ server: name, ...(source !== undefined && { source }) });
  return `${address.slice(0, address.lastIndexOf('/s/'))}/publish?${String(query)}`;
}

function needRow(ui: string, { name, slug, displayName, release }: UnpublishedServer): [Html, ...Html[]] {
  const href = `${ui}/s/${encodeURIComponent(slug)}`;
  const small = html`<code>${name}</code> · ${release ? `release ${release.number}` : 'nothing is published yet'}`;
  const [label, state] = release ? labelOf(release) : (['Not published', 'off'] as const);
  const way = release
    ? buttonLink(`${href}/releases/${release.id}`, 'See why', { look: 'small', about: `See why: ${displayName}` })
    : buttonLink(publishPath(href, name), 'Publish', { look: 'small', about: `Publish: ${displayName}` });
  return [who(displayName, small, { href }), badge(label, state), way];
}
