/** States on pages, which contain no host and no error. */
import { badge } from '../../platform/pages/components.js';
import { html, type Html } from '../../platform/pages/html.js';
import { timeOf } from '../../platform/pages/times.js';
import type { Env } from '../../config/env.js';

/** Reasons that resolve without a user. */
const REASONS: Record<string, string> = {
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

/** Returns the next step of the manager of a connection; null for none, and for an uplink, whose page shows its command. */
export function stepOf({ reason, nextStep }: { reason: string; nextStep?: string }): string | null {
  return reason.startsWith('uplink_') ? null : (nextStep ?? null);
}

/** A target on a page; servers and namespaces have no status. */
interface Shown {
  kind?: 'connection' | 'server' | 'namespace';
  status?: { state: string; reason: string; since: string };
  suspended?: unknown;
}

export interface ShownState {
  badge: Html;
  detail: Html | string;
}

/** @param isManager true if the user can resolve the state */
export function stateOf({ kind, status, suspended }: Shown, { isManager }: { isManager: boolean }): ShownState {
  if (suspended) return { badge: badge('Suspended', 'held'), detail: 'by the operator of this service' };
  if (!status) return { badge: kind === 'namespace' ? badge('Namespace') : badge('Published', 'ok'), detail: '' };
  if (status.reason === 'never_called') return { badge: badge('Not used yet', 'off'), detail: 'nobody has called it' };
  const since = html`since ${timeOf(status.since)}`;
  if (status.reason === 'uplink_waiting') return { badge: badge('Not started', 'off'), detail: since };
  if (status.state === 'connected') return { badge: badge('Works', 'ok'), detail: since };
  if (status.state === 'auth_required' || status.state === 'input_required') {
    const need = status.state === 'auth_required' ? 'log in again' : 'enter a value';
    return { badge: badge(isManager ? 'Needs you' : 'Waits for its owner', 'wait'), detail: html`${need}, ${since}` };
  }
  return { badge: badge('Does not work', 'bad'), detail: html`${REASONS[status.reason] ?? 'it fails'}, ${since}` };
}

/** Returns an icon URL relative to the root of Slipway; null without an icon, and for another host, whose icons pages do not load. */
export function ownIcon(baseUrl: string, root: string, iconUrl: string | null): string | null {
  if (iconUrl?.startsWith('data:image/')) return iconUrl;
  return iconUrl?.startsWith(`${baseUrl}/`) ? root + iconUrl.slice(baseUrl.length + 1) : null;
}

/**
 * Returns the setup page of a connection; null if no step of the user is pending.
 *
 * @param back path from the root to the page to return to
 */
export function setupOf(
  { baseUrl }: Pick<Env, 'baseUrl'>,
  root: string,
  { status }: { status?: { setupUrl?: string } },
  back: string,
): string | null {
  if (status?.setupUrl?.startsWith(`${baseUrl}/`) !== true) return null;
  return `${root}${status.setupUrl.slice(baseUrl.length + 1)}&returnUrl=${encodeURIComponent(back)}`;
}
