import { afterAll, beforeAll, expect } from '@jest/globals';
import { generateApiKey } from '../../src/modules/auth/api-key.js';
import { openBrowser, signedInBrowser } from '../support/people/browser-session.js';
import { cleanUpPrograms, readySettings, runProgram, type Program } from '../support/program.js';
import { verifies } from '../support/verifies.js';

const PASSWORD = 'correct horse battery';
const WRONG = 'wrong horse battery';

const key = generateApiKey();
let settings: Record<string, string>;
let service: Program;
let url: string;
let invited: string;

beforeAll(async () => {
  settings = { ...(await readySettings(key)), LOG_LEVEL: 'trace', ACCESS_LOG: 'true' };
  service = runProgram('main.js', settings);
  url = await service.url();
});
afterAll(cleanUpPrograms);

/** Runs `slipway keys --invite`. @returns the path of the link */
async function invite(name: string): Promise<string> {
  const command = runProgram(
    'cli/slipway.js',
    { ...settings, LOG_LEVEL: 'fatal' },
    { args: ['keys', '--invite', name] },
  );
  expect(await command.ended).toBe(0);
  invited = command.output();
  expect(invited).toMatch(/^Invitation for .*\. It works once, until 20\S+Z:\nhttp\S+$/m);
  return /\/invite\?token=[\w-]{43}/.exec(command.output())?.[0] ?? '';
}

verifies(
  ['people:invite', 'service:canaries'],
  'a person is invited on the command line, and no secret is logged',
  async () => {
    const first = await invite('ann');
    const link = await invite('ann');
    // The service has picked a free port, which the command learns from it.
    expect(invited).toContain(`\n${url}/invite?token=`);
    const browser = openBrowser({ url });
    expect((await browser.get(first)).status).toBe(410);
    expect((await browser.submit(link, { password: 'short', repeated: 'short' })).status).toBe(400);
    expect((await browser.submit(link, { password: PASSWORD, repeated: PASSWORD })).status).toBe(303);
    expect((await browser.get('/me')).text).toContain('<strong>ann</strong>');
    const cookies = [...browser.cookies.values()];
    const other = openBrowser({ url });
    expect((await other.submit('/login', { name: 'ann', password: WRONG })).status).toBe(403);
    expect((await other.submit('/login', { name: 'ann', password: PASSWORD })).status).toBe(303);
    cookies.push(...other.cookies.values());
    await signedInBrowser({ url }, { key });
    const wrong = runProgram('cli/slipway.js', settings, { args: ['keys', '--invite', ''] });
    expect(await wrong.ended).toBe(1);

    service.kill('SIGTERM');
    expect(await service.ended).toBe(0);
    const log = service.output();
    expect(log).toContain('GET /invite 200');
    expect(log).toContain('POST /login 303');
    for (const secret of [first, link].map((path) => path.split('=')[1] ?? '')) expect(log).not.toContain(secret);
    for (const secret of [PASSWORD, WRONG, 'wrong+horse', 'correct+horse', key, ...cookies])
      expect(log).not.toContain(secret);
  },
);
