import type { Releases, State } from '../../extension.js';

export type Release = Awaited<ReturnType<Releases['list']>>['releases'][number];
export type ReleaseDetail = Awaited<ReturnType<Releases['get']>>;
export type Stage = ReleaseDetail['logs'][number]['stage'];

export const STAGES: readonly Stage[] = ['deploy', 'scan', 'metadata', 'publish'];

const STATES: Record<string, readonly [label: string, state: State]> = {
  QUEUED: ['Queued', 'busy'],
  WORKING: ['Working', 'busy'],
  SUCCESS: ['Succeeded', 'ok'],
  FAILURE: ['Failed', 'bad'],
  FAILURE_SCAN: ['Failed the scan', 'bad'],
  INTERNAL_ERROR: ['Failed', 'bad'],
  AUTH_REQUIRED: ['Needs authorization', 'wait'],
  AUTH_TIMEOUT: ['Not authorized in time', 'wait'],
  CANCELLED: ['Cancelled', 'off'],
};

export function labelOf({ status, isCurrent }: { status: string; isCurrent?: boolean }): readonly [string, State] {
  return isCurrent ? ['Live', 'ok'] : (STATES[status] ?? [status, 'off']);
}

export function isRunning(status: string): boolean {
  return status === 'QUEUED' || status === 'WORKING' || status === 'AUTH_REQUIRED';
}

export function isFailed(status: string): boolean {
  return ['FAILURE', 'FAILURE_SCAN', 'INTERNAL_ERROR', 'AUTH_TIMEOUT'].includes(status);
}

export function sourceOf({ type, upstreamUrl }: Pick<Release, 'type' | 'upstreamUrl'>): string {
  if (type === 'external_shttp') return upstreamUrl ?? 'URL';
  return type === 'stdio' ? 'Bundle' : 'Module';
}

export function sourceTabOf({ type }: Pick<Release, 'type'>): 'url' | 'file' {
  return type === 'external_shttp' ? 'url' : 'file';
}

export function remedyOf({ status, type }: Pick<Release, 'status' | 'type'>): string {
  if (status === 'AUTH_TIMEOUT') return 'Nobody authorized the server in time. Continue, and authorize it then.';
  if (status === 'INTERNAL_ERROR')
    return 'The service failed, not your server. Publish again; if it fails again, ask the operator.';
  if (type === 'external_shttp') return 'Check that the server answers at this URL, then publish again.';
  if (type === 'stdio') return 'Correct the bundle, then publish it again.';
  return 'Correct the module, or the secrets that it reads, then publish it again.';
}

export function stagesOf({ status, logs }: ReleaseDetail): (readonly [stage: Stage, state: State])[] {
  const reached = Math.max(-1, ...logs.map(({ stage }) => STAGES.indexOf(stage)));
  return STAGES.map((stage, at) => {
    if (status === 'SUCCESS' || at < reached) return [stage, 'ok'];
    if (at > reached && !(at === 0 && isRunning(status))) return [stage, 'off'];
    if (isFailed(status)) return [stage, 'bad'];
    if (status === 'AUTH_REQUIRED') return [stage, 'wait'];
    return [stage, status === 'CANCELLED' ? 'off' : 'busy'];
  });
}
