import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import type { Browser } from 'playwright-core';
import { authorize, openDocs, Operation } from '../../support/documentation/docs-page.js';
import { startBrowser } from '../../support/people/browser.js';
import { startEverything, type EverythingServer } from '../../support/upstream/everything.js';
import { images } from '../../support/releases/icons.js';
import { cleanUpPrograms, readySettings, runProgram } from '../../support/program.js';
import { startRepositoryHost, type RepositoryHost } from '../../support/releases/repository-host.js';
import { skillMd } from '../../support/releases/skills.js';
import { until } from '../../support/until.js';
import { verifies } from '../../support/verifies.js';
import { zipOf } from '../../support/zips.js';

/** A real browser on a busy machine takes its time. */
const SLOW_MS = 300_000;

const key = `slipway_${randomBytes(32).toString('base64url')}`;

let url: string;
let everything: EverythingServer;
let repositories: RepositoryHost;
let browser: Browser;

beforeAll(async () => {
  const service = runProgram('main.js', await readySettings(key));
  [url, everything, repositories, browser] = await Promise.all([
    service.url(),
    startEverything(),
    startRepositoryHost(),
    startBrowser(),
  ]);
}, SLOW_MS);

afterAll(async () => {
  await Promise.all([browser?.close(), everything?.close(), repositories?.close()]);
  await cleanUpPrograms();
}, SLOW_MS);

describe('the docs page', () => {
  verifies(
    'docs:try-it-out',
    'executes every operation with its unmodified examples',
    async () => {
      const page = await openDocs(browser, url);
      const { paths } = (await (await fetch(`${url}/openapi.json`)).json()) as {
        paths: Record<string, Record<string, { operationId: string; tags: [string] }>>;
      };
      const operations = Object.entries(paths).flatMap(([path, item]) =>
        Object.entries(item).map(([method, { operationId, tags }]) => ({ path, method, operationId, tag: tags[0] })),
      );
      const rank = ({ operationId, method }: (typeof operations)[number]) =>
        method === 'delete' ? 2 : first.includes(operationId) ? 0 : last.includes(operationId) ? 1.5 : 1;
      operations.sort(
        (a, b) =>
          rank(a) - rank(b) ||
          first.indexOf(a.operationId) - first.indexOf(b.operationId) ||
          last.indexOf(a.operationId) - last.indexOf(b.operationId) ||
          (a.method === 'delete' ? b.path.length - a.path.length : 0),
      );
      await authorize(page, key);
      const archive = await zipOf({ 'SKILL.md': skillMd() });
      repositories.serve(
        '/acme/skills/archive/main.zip',
        await zipOf({ 'skills-main/code-review/SKILL.md': skillMd() }),
      );
      repositories.serve('/icon.png', images['image/png']);
      const replacements = {
        'http://127.0.0.1:3001/mcp': everything.url,
        'https://github.com': repositories.url,
        // PATCH fetches the image.
        'https://weather.example.com/icon.png': `${repositories.url}/icon.png`,
      };
      const unexpected: string[] = [];
      // Following a log does not end by itself, and the page shows nothing before the end.
      for (const { operationId, tag } of operations.filter(
        (operation) => operation.operationId !== 'LogStreams_follow',
      )) {
        const operation = new Operation(page, tag, operationId);
        await operation.open();
        await operation.adjust(replacements);
        if (operationId === 'ServerIcons_upload') await operation.choose('file', images['image/png']);
        if (operationId === 'Skills_upload') await operation.choose('archive', archive);
        const status = await operation.press();
        const expected = statuses[operationId];
        if (expected === undefined ? status > 299 : status !== expected) unexpected.push(`${operationId}: ${status}`);
        if (operationId === 'Publish_publish') await released();
        await operation.shut();
      }
      expect(unexpected).toEqual([]);
    },
    // Each of 130 operations renders the page anew: 9 minutes beside other tests.
    6 * SLOW_MS,
  );
});

/** Operations that run first, in this order: the others use what they create. */
const first = ['Namespaces_claim', 'Servers_create', 'Publish_publish', 'Connections_set', 'Skills_set'];

/** Operations that run after the others and before deletions: the examples of the others fail after them. */
const last = [
  ...['ServerDomains_rename', 'Skills_upload', 'AccountTransfers_transfer', 'Namespaces_move'],
  ...['Connections_suspend', 'Servers_suspend', 'Namespaces_suspend'],
];

/** Status of each operation whose example fails on a new service. */
const statuses: Record<string, number> = {
  // METRICS_TOKEN is not set.
  Metrics_read: 404,
  // The release is not paused.
  Releases_resume: 400,
  // The tool has no stored samples.
  ToolSchemas_infer: 404,
  // The release is a URL.
  Bundle_download: 404,
  // The example server has no triggers, and the connection is no uplink.
  Triggers_get: 404,
  Triggers_subscribe: 404,
  // The namespace is suspended by then.
  Triggers_unsubscribe: 403,
  Uplink_paired: 404,
  // The target namespace does not exist.
  Servers_transfer: 404,
  // The example runs as the only account, an operator's, which cannot be disabled.
  Accounts_update: 409,
  // A key makes no invitation for its own account.
  Invitations_create: 403,
  // The id of the example is no login.
  Logins_end: 404,
  // The id of the example is not a key.
  Accounts_revokeKey: 404,
  Accounts_rotateKey: 404,
  // There is no account `bob`, and so no grant to it.
  ServerGrants_set: 404,
  ServerGrants_remove: 404,
  ConnectionGrants_set: 404,
  ConnectionGrants_remove: 404,
  NamespaceGrants_set: 404,
  NamespaceGrants_remove: 404,
  // The server is its own, so nobody asks for it.
  AccessRequests_ask: 409,
  AccessRequests_decide: 404,
  // The ids of the examples are no invitations.
  MemberInvitations_accept: 404,
  MemberInvitations_decline: 404,
  // The only account owns a namespace, is no organization, and there is none to hand over to.
  Invitations_inviteMember: 409,
  Members_set: 409,
  Members_remove: 409,
  Accounts_remove: 409,
  AccountTransfers_transfer: 404,
  Namespaces_move: 404,
};

/** Waits for the first release. */
async function released(): Promise<void> {
  const path = `${url}/servers/acme%2Fweather/releases/latest`;
  await until(async () => {
    const answer = await fetch(path, { headers: { authorization: `Bearer ${key}` } });
    const release = (await answer.json()) as { status: string };
    if (release.status !== 'SUCCESS') throw new Error(JSON.stringify(release));
    return true;
  }, 'the release succeeds');
}
