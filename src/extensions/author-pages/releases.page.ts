import {
  actions,
  badge,
  button,
  buttonLink,
  card,
  columns,
  empty,
  formOf,
  type Framed,
  type FormsView,
  html,
  type Html,
  notice,
  pager,
  type Releases,
  table,
  tile,
  timeline,
  timeOf,
  withReason,
} from '../../extension.js';
import { publishPath } from './author-slots.js';
import type { OwnServer } from './own-servers.service.js';
import {
  isFailed,
  isRunning,
  labelOf,
  type Release,
  type ReleaseDetail,
  remedyOf,
  sourceOf,
  sourceTabOf,
  STAGES,
  stagesOf,
} from './release-states.js';
import { serverTabs } from './server-tabs.js';

export type ReleaseList = Awaited<ReturnType<Releases['list']>>;

interface ServerView extends FormsView {
  server: OwnServer;
  notice: string | null;
}

const crumbOf = ({ name, slug }: OwnServer) => [name, `ui/s/${encodeURIComponent(slug)}`] as const;

export function releasesPage(view: ServerView, { releases, pagination }: ReleaseList): Framed {
  const { server, address } = view;
  const headings = [
    ['Release'],
    ['Status', 'state'],
    ['Source'],
    ['What changed'],
    ['Published by'],
    ['Time', 'extra'],
    ['Actions', 'actions'],
  ] as const;
  const emptyList = empty('No releases', 'Nothing of this server is published yet.');
  return {
    title: server.detail.displayName,
    notice: view.notice,
    asRequest: `/servers/${encodeURIComponent(server.name)}/releases`,
    crumbs: [['Catalogue', 'ui/catalogue'], crumbOf(server), ['Releases']],
    head: {
      tile: tile(server.detail.displayName, { look: 'large' }),
      actions:
        server.mayManage && buttonLink(publishPath(address, server.name), 'Publish a release', { look: 'primary' }),
      lead: html`<code>${server.name}</code>`,
    },
    tabs: serverTabs(address, server.name, '/releases', server.mayManage),
    body: withReason(
      view,
      card(
        'releases',
        'Releases',
        html`${
          releases.length === 0
            ? emptyList
            : table(
                'Releases',
                headings,
                releases.map((release) => releaseRow(view, release)),
              )
        }
${pager('releases', pagination, (page) => `?page=${page}`)}`,
        { count: pagination.totalCount },
      ),
    ),
  };
}

function releaseRow(view: ServerView, release: Release) {
  const { server, address } = view;
  const { id, number, status, isCurrent, commitMessage, commit, createdBy, createdAt } = release;
  const label = button('Roll back', { look: 'small', about: `Roll back to release ${number}` });
  const mayRollBack = server.mayManage && status === 'SUCCESS' && !isCurrent;
  return [
    html`<a href="${address}/releases/${id}">Release ${number}</a>`,
    badge(...labelOf(release)),
    sourceOf(release),
    commitMessage ?? commit ?? '–',
    createdBy?.name ?? '–',
    timeOf(createdAt),
    mayRollBack && formOf(view, 'releases/roll-back', [], label, { id }),
  ];
}

/** @param isFollowed false while the reader has paused the updates */
export function releasePage(view: ServerView, release: ReleaseDetail, isFollowed: boolean): Framed {
  const { server, address } = view;
  const { number, status, createdBy, createdAt, commitMessage } = release;
  const isLive = isRunning(status);
  const ownAddress = `${address}/releases/${release.id}`;
  return {
    title: `Release ${number}`,
    notice: view.notice,
    asRequest: `/servers/${encodeURIComponent(server.name)}/releases/${release.id}`,
    crumbs: [['Catalogue', 'ui/catalogue'], crumbOf(server), [`Release ${number}`]],
    head: {
      tile: tile(server.detail.displayName, { look: 'large' }),
      badge: badge(...labelOf(release)),
      actions:
        isLive &&
        (isFollowed
          ? buttonLink(`${ownAddress}?follow=0`, 'Pause updates')
          : buttonLink(ownAddress, 'Follow', { look: 'primary' })),
      lead: html`<code>${server.name}</code> · ${sourceOf(release)} · published${createdBy && ` by ${createdBy.name}`}, ${timeOf(createdAt)}.${commitMessage && ` ${commitMessage}`}`,
    },
    tabs: serverTabs(address, server.name, '/releases', server.mayManage),
    isLive: isLive && isFollowed,
    body: withReason(
      view,
      html`${stateOf(view, release)}
${columns(logOf(release), html`${stagesCard(release)}${server.detail.tools !== null && release.isCurrent && toolsCard(server)}`)}`,
    ),
  };
}

function stateOf(view: ServerView, release: ReleaseDetail): Html | null {
  const { server, address } = view;
  const { status, setupUrl, lastError } = release;
  if (status === 'AUTH_REQUIRED') {
    const way = setupUrl !== undefined && buttonLink(setupUrl, 'Authorize', { look: 'primary' });
    return notice(
      html`<p>The server needs an authorization before it can be scanned. The release continues by itself afterwards.</p>${actions(way)}`,
      'wait',
    );
  }
  const settings = server.mayManage && buttonLink(`${address}/settings`, 'Settings');
  if (status === 'SUCCESS') {
    if (!release.isCurrent) return null;
    const ways = actions(
      buttonLink(address, 'Use it', { look: 'primary' }),
      server.mayManage && buttonLink(`${address}/settings`, 'Share it'),
    );
    return notice(html`<p>The release is live: all calls of <code>${server.name}</code> reach it.</p>${ways}`);
  }
  if (!isFailed(status)) return null;
  const again = buttonLink(publishPath(address, server.name, sourceTabOf(release)), 'Publish again', {
    look: 'primary',
  });
  const resume =
    status === 'AUTH_TIMEOUT' && formOf(view, `releases/resume`, [], button('Continue'), { id: release.id });
  const currentNote = server.detail.currentReleaseId !== null && 'The current release still serves all calls.';
  return notice(
    html`<p><b>${lastError ?? 'The release failed.'}</b></p><p>${remedyOf(release)} ${currentNote}</p>${server.mayManage && actions(again, resume, settings)}`,
    'bad',
  );
}

function stagesCard(release: ReleaseDetail): Html {
  const stages = stagesOf(release);
  const done = stages.filter(([, state]) => state === 'ok').length;
  const label = `${done} of ${STAGES.length} stages`;
  const detailOf = (stage: string) =>
    release.logs.findLast((line) => line.stage === stage && (line.level === 'error' || line.level === 'success'))
      ?.message;
  return card(
    'stages',
    'Stages',
    html`<progress max="${STAGES.length}" value="${done}" aria-label="${label}"></progress>
${timeline(stages.map(([stage, state]) => [state, stage[0].toUpperCase() + stage.slice(1), detailOf(stage)] as const))}`,
    { end: html`<span class="soft" role="status">${label}</span>` },
  );
}

const LEVELS: Record<string, string> = { error: 'bad', warning: 'wait', success: 'ok' };

function logOf({ logs }: ReleaseDetail): Html {
  const lines = logs.map(({ stage, level, message, timestamp, error }) => {
    const look = LEVELS[level] ?? '';
    return html`<li class="${look}"><time datetime="${timestamp}">${timestamp.slice(11, 23)}</time><b class="${look}">${level}</b><span>${stage}: ${message}${error && html`<br>${error.message}`}</span></li>\n`;
  });
  const body =
    lines.length > 0
      ? html`<ol class="log" tabindex="0" aria-label="Log lines, in UTC">${lines}</ol>`
      : html`<p>The release waits for its turn.</p>`;
  return card('log', 'Log', body, { end: html`<span class="soft">UTC</span>` });
}

function toolsCard({ detail: { tools } }: OwnServer): Html {
  const rows = (tools ?? []).slice(0, 50).map(({ name, description }) => [html`<code>${name}</code>`, description]);
  return card('tools', 'Tools', table('Tools', [['Name'], ['What it does']], rows), { count: tools?.length });
}
