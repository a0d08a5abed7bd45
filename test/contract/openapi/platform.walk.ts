import { METRICS_TOKEN, type ApiWalk } from '../../support/documentation/api-walk.js';

/** Requests between the processes of the service. */
export const undocumented = [
  'POST /internal/hosting/{host}/{epoch}',
  'POST /internal/resumed-streams',
  'POST /internal/sse-streams',
  'POST /internal/pending-calls',
  'POST /internal/uplink/{connection}/{tunnel}',
];

/** Health and metrics. */
export default async function (walk: ApiWalk): Promise<void> {
  await walk.ask('GET /health', 200, {}, undefined, { bearer: null });
  await walk.ask('GET /ready', 200, {}, undefined, { bearer: null });
  await walk.ask('GET /metrics', 200, {}, undefined, { bearer: METRICS_TOKEN });
  await walk.ask('GET /metrics', 401, {}, undefined, { bearer: null });
}
