/** States of connections for people: a sign, a word, the kind of the reason and a time. No host is named, and nobody is quoted. */
import { html, type Html } from '../../platform/pages/html.js';
import { timeOf } from '../../platform/pages/times.js';

/** Kinds of reasons of states that no person ends. */
const REASONS: Record<string, string> = {
  uplink_waiting: 'its local server is not started',
  uplink_failed: 'its local server fails',
  scopes_refused: 'it refuses the scopes it asked for',
  authorization_unavailable: 'its login cannot be renewed now',
  not_mcp: 'it is not an MCP server',
  loop: 'it leads back to this service',
  blocked: 'this service is not allowed to reach it',
  forbidden: 'it refuses access',
  timeout: 'it does not answer in time',
  unreachable: 'it cannot be reached',
  rate_limited: 'it was called too often',
  unreadable: 'its responses cannot be read',
  not_runnable: 'nothing of it is published to run',
  server_deleted: 'its server is deleted',
  source_waiting: 'hosting is off',
};

/** A state as REST answers it; a server and a namespace have none. */
interface Shown {
  kind?: 'connection' | 'server' | 'namespace';
  status?: { state: string; reason: string; since: string };
  suspended?: unknown;
}

/** @param isManager the person may end what waits */
export function stateOf({ kind, status, suspended }: Shown, { isManager }: { isManager: boolean }): Html {
  if (suspended) return html`<b class="bad">⊘ suspended</b> by the operator of this service`;
  if (!status || status.reason === 'never_called') {
    return html`<b>· not known yet</b>${kind !== 'namespace' && `: ${status ? 'nobody has called it' : 'its state is not watched'}`}`;
  }
  const since = html`since ${timeOf(status.since)}`;
  if (status.state === 'connected') return html`<b class="good">✓ works</b> ${since}`;
  if (status.state === 'auth_required' || status.state === 'input_required') {
    const word = isManager ? 'needs you' : 'waits for its owner';
    const need = status.state === 'auth_required' ? 'log in again' : 'enter a value';
    return html`<b class="wait">◐ ${word}</b> (${need}) ${since}`;
  }
  return html`<b class="bad">✕ does not work</b> (${REASONS[status.reason] ?? 'it fails'}) ${since}`;
}
