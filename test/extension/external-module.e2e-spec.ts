import { spawnSync } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import { query } from '../support/database/query.js';
import { cleanUpPrograms, databaseUrlOf, dataFolder, runProgram, type Program } from '../support/program.js';
import { verifies } from '../support/verifies.js';

const START_MS_MAX = 300_000;
const example = path.resolve('examples/stars-module');

/** The example as it is deployed: outside our tree, built, without any package beside it. */
let stars: string;
/** A module with a route that declares nothing. */
let open: string;

beforeAll(async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'slipway-modules-'));
  stars = path.join(folder, 'stars');
  const tsc = [path.resolve('node_modules/typescript/bin/tsc'), '-p', path.join(example, 'tsconfig.build.json')];
  const built = spawnSync(process.execPath, [...tsc, '--outDir', path.join(stars, 'dist')], { encoding: 'utf8' });
  expect(built.stdout).toBe('');
  await cp(path.join(example, 'package.json'), path.join(stars, 'package.json'));

  open = path.join(folder, 'open');
  await mkdir(open);
  await writeFile(path.join(open, 'package.json'), '{"name":"open","type":"module","main":"main.js"}');
  const source = `
    import { Controller, Get, Module } from '@nestjs/common';
    class OpenController { read() { return {}; } }
    Get()(OpenController.prototype, 'read', Object.getOwnPropertyDescriptor(OpenController.prototype, 'read'));
    Controller('open')(OpenController);
    class OpenModule {}
    Module({ controllers: [OpenController] })(OpenModule);
    export default { name: 'open', module: () => OpenModule };`;
  await writeFile(path.join(open, 'main.js'), source);
}, START_MS_MAX);

afterAll(async () => {
  await cleanUpPrograms();
  await rm(path.dirname(stars), { recursive: true, force: true });
}, START_MS_MAX);

/** Sends a request with the operator's key. */
async function ask(program: Program, method: string, place: string, body?: object) {
  const response = await fetch(`${await program.url()}${place}`, {
    method,
    headers: { authorization: `Bearer ${await program.key()}`, 'content-type': 'application/json' },
    body: body && JSON.stringify(body),
  });
  return { status: response.status, body: JSON.parse(await response.text()) };
}

describe('SLIPWAY_MODULES', () => {
  verifies(
    'extension:module:loaded',
    'loads the example: its routes, its count on the cards of servers, its table and its part of the document',
    async () => {
      const dataDir = await dataFolder();
      const service = runProgram('main.js', { DATA_DIR: dataDir, SLIPWAY_MODULES: stars, LOG_FORMAT: 'pretty' });
      await ask(service, 'PUT', '/namespaces/acme');
      await ask(service, 'PUT', '/servers/acme%2Fweather', {});
      await ask(service, 'PUT', '/servers/acme%2Fother', {});
      const place = '/servers/acme%2Fweather/stars';
      const starred = { status: 200, body: { count: 1, starred: true } };
      expect(await ask(service, 'PUT', place)).toEqual(starred);
      expect(await ask(service, 'PUT', place)).toEqual(starred);
      // The unencoded form reaches it as well, since the word became one that follows a server.
      expect(await ask(service, 'GET', '/servers/acme/weather/stars')).toEqual(starred);
      expect((await ask(service, 'PUT', '/servers/acme%2Fstars', {})).status).toBe(400);
      const { servers } = (await ask(service, 'GET', '/servers?fields=slug,stars')).body;
      expect(servers).toEqual(
        expect.arrayContaining([
          { slug: 'weather', stars: 1 },
          { slug: 'other', stars: 0 },
        ]),
      );
      expect((await ask(service, 'GET', '/servers/acme%2Fweather')).body).toMatchObject({ stars: 1 });
      expect((await fetch(`${await service.url()}${place}`, { method: 'PUT' })).status).toBe(401);
      expect((await ask(service, 'PUT', '/servers/acme%2Fnone/stars')).status).toBe(404);
      expect(await ask(service, 'DELETE', place)).toEqual({ status: 200, body: { count: 0, starred: false } });

      const { paths, components } = (await ask(service, 'GET', '/openapi.json')).body;
      expect(paths['/servers/{qualifiedName}/stars'].put).toMatchObject({ 'x-scope': 'stars:write', tags: ['Stars'] });
      expect(components.schemas.ListedServerDto.properties.stars).toMatchObject({ type: 'integer' });
      const names = await query(await databaseUrlOf(dataDir), 'SELECT name FROM module_migrations');
      expect(names).toEqual([{ name: 'stars:CreateStars1795300000000' }]);
      service.kill('SIGTERM');
      expect(await service.ended).toBe(0);
    },
    START_MS_MAX,
  );

  verifies(
    ['extension:module:loaded', 'auth:declared'],
    'runs no migration at the start with MIGRATE=off, and starts no open route',
    async () => {
      const dataDir = await dataFolder();
      const undeclared = runProgram('main.js', { DATA_DIR: dataDir, SLIPWAY_MODULES: open });
      expect(await undeclared.ended).toBe(1);
      expect(undeclared.output()).toContain('GET /open declares neither @Access(…) nor @Public()');
      const unmigrated = runProgram('main.js', { DATA_DIR: dataDir, SLIPWAY_MODULES: stars, MIGRATE: 'off' });
      expect(await unmigrated.ended).toBe(1);
      expect(unmigrated.output()).toContain('run `npm run migrate` first');
    },
    START_MS_MAX,
  );

  verifies('extension:module:one-copy', 'names the module whose import fails', async () => {
    await writeFile(path.join(open, 'main.js'), "import 'nowhere-to-be-found';");
    const service = runProgram('main.js', { DATA_DIR: await dataFolder(), SLIPWAY_MODULES: open });
    expect(await service.ended).toBe(1);
    expect(service.output()).toContain(`${open}: Cannot find package 'nowhere-to-be-found'`);
    await writeFile(path.join(open, 'main.js'), 'export default {};');
    const empty = runProgram('main.js', { DATA_DIR: await dataFolder(), SLIPWAY_MODULES: open });
    expect(await empty.ended).toBe(1);
    expect(empty.output()).toContain('its default export must be what defineModule(');
  });
});
