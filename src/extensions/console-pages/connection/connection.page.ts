/** The page of a connection. Null parts are left out. */
import {
  badge,
  button,
  buttonLink,
  card,
  columns,
  facts,
  formOf,
  html,
  notice,
  snippet,
  stateOf,
  stepOf,
  table,
  tabs,
  tile,
  timeline,
  timeOf,
  withReason,
  type Framed,
  type Html,
  type State,
} from '../../../extension.js';
import { mockPart, settingsPart } from './connection-settings.page.js';
import type { Calls, ConnectionView } from './connection-view.js';
import { accessPath } from '../target-access.page.js';

export const DONE = {
  'set-up': 'The connection is set up. It is yours.',
  added: 'The server is added. The connection is yours.',
  changed: 'The change is stored.',
  record: 'Calls are recorded from now on.',
  stop: 'Calls are recorded no longer. The recorded ones stay.',
  forget: 'The recorded calls are deleted.',
} as const;

/** Grantees see only the name, the state and the kind of its reason. */
export function connectionPage(view: ConnectionView): Framed {
  const { namespace, connection, grant, setupUrl } = view;
  const { connectionId, name, status, suspended } = connection;
  const isGuest = grant?.level === 'call';
  const state = stateOf({ status, suspended }, { isManager: !isGuest });
  const login = status.state === 'input_required' ? 'Enter the values' : 'Log in';
  const access = view.root + accessPath({ kind: 'connection', namespace, name: connectionId });
  const { uplink } = view;
  const parts = [
    uplink ? ['#pair', 'Start'] : ['#connect', 'Connect'],
    view.calls && ['#calls', 'Calls'],
    !uplink && ['#tools', 'Tools'],
    view.mayAdminister && [access, 'Access'],
    view.changes && [uplink ? `${view.address}?settings#settings` : '#settings', 'Settings'],
  ].filter((part): part is [string, string] => Boolean(part));
  return {
    title: name,
    crumbs: [['Home', 'ui/'], [namespace], [connectionId]],
    head: {
      tile: tile(name, { look: 'large' }),
      badge: state.badge,
      lead: html`<code>${namespace}/${connectionId}</code> ${state.detail}`,
      actions: html`${view.mayRead && formOf(view, 'check', [], button('Check every step'))}${setupUrl === null ? !uplink && buttonLink('#tools', 'Try a tool', { look: 'primary' }) : buttonLink(setupUrl, login, { look: 'primary' })}`,
    },
    tabs: tabs(name, parts, null),
    asRequest: `/connect/${encodeURIComponent(namespace)}/${encodeURIComponent(connectionId)}`,
    isLive: uplink?.isLive,
    body: withReason(
      view,
      columns(
        html`${uplink ? pairPart(uplink) : view.connect}${callsPart(view)}${!uplink && view.tools}${!uplink?.isLive && settingsPart(view)}`,
        html`${statePart(view)}${!uplink && mockPart(view)}${!uplink && view.parts}`,
      ),
    ),
  };
}

function pairPart({ command, isLive }: NonNullable<ConnectionView['uplink']>): Html {
  return card(
    'pair',
    'Start it on your machine',
    command === null
      ? html`<p>Its manager starts it on a machine.</p>`
      : html`<p>Set SLIPWAY_KEY to one of your API keys, then run this in a terminal, and leave it running:</p>
${snippet('pair-command', 'Command', command)}
<p class="soft">${command.endsWith('COMMAND') && 'COMMAND is what starts your server, such as npx -y and a package. '}Ctrl-C stops the server and deletes the connection.
${isLive && 'This page changes when the server is paired.'}</p>`,
    { end: badge('Waits for your machine', 'wait') },
  );
}

function statePart(view: ConnectionView): Html {
  const { connection, grant, setupUrl } = view;
  const { status, suspended } = connection;
  const { state, message } = status;
  const isGuest = grant?.level === 'call';
  const isWaiting = state === 'auth_required' || state === 'input_required';
  const shown = stateOf({ status, suspended }, { isManager: !isGuest });
  const may = grant?.tools
    ? html`call ${grant.tools.length} of its tools: ${grant.tools.join(', ')}`
    : isGuest
      ? 'call its tools'
      : 'call its tools and change it';
  return card(
    'state',
    'State',
    html`${facts([
      ['State', html`${shown.badge} ${shown.detail}`],
      (isWaiting || !isGuest) && message !== undefined && status.reason !== 'uplink_waiting' && ['Reason', message],
      !isGuest && setupUrl === null && stepOf(status) !== null && ['Next step', stepOf(status)],
      ['Your access', html`You may ${may}.`],
    ])}
${stepsOf(view)}`,
  );
}

const STEP_STATES: Record<string, State> = { ok: 'ok', failed: 'bad', skipped: 'off' };

function stepsOf({ diagnosis }: ConnectionView): Html | undefined {
  return (
    diagnosis &&
    html`<h3 id="steps">Every step</h3>
${timeline(
  diagnosis.steps.map(({ step, status, evidence, ms }) => [
    STEP_STATES[status],
    step,
    html`${status}: ${evidence} (${Math.round(ms)} ms)`,
  ]),
)}
${notice(diagnosis.verdict)}`
  );
}

const OUTCOMES: Record<string, Html> = {
  ok: badge('OK', 'ok'),
  toolError: badge('Tool error', 'bad'),
  rpcError: badge('Refused by the server', 'bad'),
  exception: badge('Failed', 'bad'),
  denied: badge('Denied', 'held'),
  canceled: badge('Canceled', 'off'),
};

const SHOWN_CALLS_MAX = 20;

function callsPart({ calls, root, namespace, connection }: ConnectionView): Html | null {
  if (!calls) return null;
  // Tool calls come first: clients send requests of the protocol around each of them.
  const isOfTool = ({ tool }: Calls['invocations'][number]) => tool !== null;
  const ordered = [...calls.invocations.filter(isOfTool), ...calls.invocations.filter((call) => !isOfTool(call))];
  const rows = ordered
    .slice(0, SHOWN_CALLS_MAX)
    .map(({ at, tool, rpcMethod, caller, response, duration, exceptions }) => [
      timeOf(at),
      html`<code>${tool ?? rpcMethod ?? 'a message that cannot be read'}</code>`,
      caller ? html`${caller.account.name ?? 'a deleted account'}<small>${withWhat(caller)}</small>` : 'this service',
      html`${OUTCOMES[response.outcome] ?? badge('End not known')}${exceptions[0] && html`<small>${exceptions[0].message}</small>`}`,
      `${duration.wallMs} ms`,
    ]);
  const headings = [['Time'], ['Tool'], ['Caller'], ['Outcome', 'state'], ['Duration', 'num']] as const;
  return card(
    'calls',
    'Last calls',
    rows.length === 0
      ? html`<p class="soft">No calls yet. The calls of your apps are listed here.</p>`
      : html`${table('Last calls', headings, rows)}`,
    {
      end: html`${calls.total > rows.length && html`<span class="soft">The newest ${rows.length} of ${calls.total}</span> `}<a href="${root}ui/calls?target=${encodeURIComponent(`${namespace}/${connection.connectionId}`)}">All calls</a>`,
    },
  );
}

function withWhat({ credential, client }: NonNullable<Calls['invocations'][number]['caller']>): string {
  const { kind, name } = credential;
  const credentialName = kind === 'key' ? `key “${name ?? 'revoked'}”` : (name ?? 'a login that no longer exists');
  return client === null ? credentialName : `${client}, ${credentialName}`;
}
