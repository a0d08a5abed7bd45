import {
  badge,
  card,
  type CheckLine,
  columns,
  COMMIT,
  details,
  empty,
  facts,
  type Framed,
  html,
  type Html,
  type HtmlValue,
  list,
  table,
  timeOf,
  VERSION,
} from '../../extension.js';
import type { Section, ServiceView } from './service-sections.js';

const STATES = { ok: 'ok', warning: 'wait', failed: 'bad' } as const;

type Value<S> = S extends { value: infer T } ? T : never;

export function servicePage(root: string, view: ServiceView): Framed {
  const isReading = Object.values(view).some((section) => section === null);
  return {
    title: 'Service',
    asRequest: '/ready',
    head: {
      badge: view.checks && 'value' in view.checks && worstOf(view.checks.value),
      lead: 'The state of this Slipway, at most 15 seconds old. Only operators see this page.',
    },
    isLive: isReading,
    body: columns(
      html`${sectionOf('checks', 'Checks', view.checks, checksPart)}
${sectionOf('queues', 'Queues', view.queues, queuesPart)}
${sectionOf('accounts', 'Limits and use by account', view.accounts, (accounts) => accountsPart(root, accounts))}`,
      html`${card('process', 'Slipway', processPart())}
${sectionOf('processes', 'Processes', view.processes, processesPart)}
${sectionOf('storage', 'Storage', view.sizes, sizesPart)}
${sectionOf('disk', 'Disk and backup', view.disk, (disk) => diskPart(root, disk))}
${sectionOf('modules', 'Modules', view.modules, (modules) => modulesPart(root, modules))}
${sectionOf('suspended', 'Suspended', view.suspended, suspendedPart)}`,
    ),
  };
}

/** Renders a section with its own state: if it could not be read, it shows the error. */
function sectionOf<T>(id: string, title: string, section: Section<T>, bodyOf: (value: T) => Html): Html {
  if (section === null) return card(id, title, html`<p class="soft" role="status">Being read…</p>`);
  if ('value' in section) return card(id, title, bodyOf(section.value));
  return card(id, title, html`<p role="alert">${badge('Failed', 'bad')} This could not be read: ${section.fault}.</p>`);
}

function worstOf(lines: CheckLine[]): Html {
  const failed = lines.filter(({ level }) => level === 'failed').length;
  const warnings = lines.filter(({ level }) => level === 'warning').length;
  if (failed > 0) return badge(failed === 1 ? '1 check failed' : `${failed} checks failed`, 'bad');
  if (warnings > 0) return badge(warnings === 1 ? '1 warning' : `${warnings} warnings`, 'wait');
  return badge('All checks ok', 'ok');
}

function checksPart(lines: CheckLine[]): Html {
  const headings = [['Check'], ['State', 'state'], ['Found']] as const;
  const rowOf = ({ level, name, text }: CheckLine): HtmlValue[] => [name, badge(level, STATES[level]), text || '–'];
  const faults = lines.filter(({ level }) => level !== 'ok').sort((a, b) => a.level.localeCompare(b.level));
  const ok = lines.filter(({ level }) => level === 'ok');
  return html`${faults.length > 0 ? table('Warnings and failed checks', headings, faults.map(rowOf)) : html`<p>Nothing to do: every check is ok.</p>`}
${details(`${ok.length} checks are ok`, table('Checks that are ok', headings, ok.map(rowOf)))}`;
}

function queuesPart(queues: Value<ServiceView['queues']>): Html {
  const headings = [['Queue'], ['Waiting', 'num'], ['Running', 'num'], ['Delayed', 'num'], ['Failed', 'num']] as const;
  const rows = queues.map(([queue, { waiting = 0, active = 0, delayed = 0, failed = 0 }]) => [
    html`<code>${queue}</code>`,
    waiting,
    active,
    delayed,
    failed > 0 ? badge(failed, 'bad') : 0,
  ]);
  return html`${table('Jobs by queue', headings, rows)}
<p class="soft tail">Failed jobs are those that were given up: the log says why. Each queue keeps the last 1,000.</p>`;
}

function accountsPart(root: string, accounts: Value<ServiceView['accounts']>): Html {
  const rows = accounts.map(({ name, shares }) => [
    html`<a href="${root}ui/people?q=${encodeURIComponent(name)}">${name}</a>`,
    shares.length === 0
      ? '–'
      : shares.map(({ limit, used, max }, at) => {
          const isBytes = limit.toLowerCase().includes('bytes');
          const share = Math.round((100 * used) / Math.max(max, 1));
          return html`${at > 0 && ', '}<code>${limit}</code> ${isBytes ? bytesOf(used) : used.toLocaleString('en')} of ${isBytes ? bytesOf(max) : max.toLocaleString('en')}${share >= 80 && html` ${badge(`${share} %`, share >= 100 ? 'bad' : 'wait')}`}`;
        }),
  ]);
  return html`${table('Accounts and the limits that they use most', [['Account'], ['Uses most of']], rows)}
<p class="soft tail">The ten accounts that wrote most log today or own most connections and servers.</p>`;
}

function processPart(): Html {
  return facts([
    ['Version', VERSION],
    ['Commit', html`<code>${COMMIT.slice(0, 12)}</code>`],
    ['Node', process.version],
    ['This process since', timeOf(new Date(Date.now() - process.uptime() * 1000).toISOString())],
  ]);
}

function processesPart(processes: Value<ServiceView['processes']>): Html {
  if (processes.length === 0) {
    return html`<p class="soft">No process holds a lease: programs and tunnels are what processes hold leases for.</p>`;
  }
  return list(
    processes.map(({ roles, machine, worker, leaseUntil, isLive }) => [
      html`<b>${machine ?? 'unknown machine'}</b>${worker !== null && `, worker ${worker}`}<p>${roles.join(', ')}, lease until ${timeOf(leaseUntil.toISOString())}</p>`,
      isLive ? badge('Live', 'ok') : badge('Lost', 'bad'),
    ]),
  );
}

function sizesPart({ database, logs, logDays, files, newFiles }: Value<ServiceView['sizes']>): Html {
  return html`${facts([
    ['Database', bytesOf(database)],
    ['of that, logs', bytesOf(logs)],
    ['Files of releases', html`${bytesOf(files)}, ${bytesOf(newFiles)} of the last 7 days`],
  ])}
${
  logDays.length > 0 &&
  details(
    'Logs by day',
    table(
      'Logs by day, in UTC',
      [['Day'], ['Size', 'num']],
      logDays.map(({ day, bytes }) => [day, bytesOf(bytes)]),
    ),
  )
}`;
}

function diskPart(root: string, { freeBytes, isEmbedded, backupAt }: Value<ServiceView['disk']>): Html {
  const missing = html`${badge('None', 'wait')} <a href="${root}docs/guides/operate.md#backup-and-restore">Make one</a>`;
  const elsewhere = isEmbedded ? missing : 'with the backups of your Postgres';
  return facts([
    ['Free in DATA_DIR', bytesOf(freeBytes)],
    ['Last backup', backupAt === null ? elsewhere : timeOf(backupAt.toISOString())],
  ]);
}

function modulesPart(root: string, modules: string[]): Html {
  return modules.length === 0
    ? html`<p class="soft">None besides those of Slipway. <a href="${root}docs/guides/extend.md">Teams add modules</a>.</p>`
    : list(modules.map((name) => [html`<code>${name}</code>`]));
}

function suspendedPart(suspended: Value<ServiceView['suspended']>): Html {
  if (suspended.length === 0) return empty('Nothing is suspended', 'Suspended accounts and targets appear here.');
  return list(
    suspended.map(({ kind, name, reason, at }) => [
      html`<b>${name}</b><p>${kind}${at && html`, since ${timeOf(at.toISOString())}`}${reason && html`: ${reason}`}</p>`,
    ]),
  );
}

const UNITS = ['B', 'KB', 'MB', 'GB', 'TB'] as const;

function bytesOf(bytes: number): string {
  const unit = Math.min(Math.max(0, Math.floor(Math.log(Math.max(bytes, 1)) / Math.log(1024))), UNITS.length - 1);
  return `${Number((bytes / 1024 ** unit).toFixed(1))} ${UNITS[unit]}`;
}
