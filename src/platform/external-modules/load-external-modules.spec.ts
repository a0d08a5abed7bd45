import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect } from '@jest/globals';
import { verifies } from '../../../test/support/verifies.js';
import { loadExternalModules, MODULE_API } from './load-external-modules.js';

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'slipway-module-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function writePackage(place: string, manifest: object): Promise<void> {
  await mkdir(place, { recursive: true });
  await writeFile(path.join(place, 'package.json'), JSON.stringify(manifest));
}

describe('a module outside the tree', () => {
  const load = (modulesCheck: 'on' | 'off', location = folder) =>
    loadExternalModules({ modules: [location], modulesCheck });

  verifies('extension:module:api-version', 'loads only into a version of the API that it is written for', async () => {
    const peerDependencies = { '@slipway/module': '^2.1.0' };
    await writePackage(folder, { name: 'notes', type: 'module', main: 'main.js', peerDependencies });
    await writeFile(path.join(folder, 'main.js'), "export default { name: 'notes', module: () => class {} }");
    const sentence =
      `${folder}: it needs @slipway/module ^2.1.0, and this Slipway has ${MODULE_API}: install a release of the module for this ` +
      'version, or set SLIPWAY_MODULES_CHECK=off to load it as it is.';
    await expect(load('on')).rejects.toThrow(sentence);
    await expect(load('off', `${folder}/`)).resolves.toHaveLength(1);

    const newer = path.join(folder, 'newer');
    await writePackage(newer, { name: 'newer', type: 'module', main: 'main.js' });
    await writeFile(
      path.join(newer, 'main.js'),
      "export default { name: 'newer', apiVersion: 2, module: () => class {} }",
    );
    await expect(load('on', newer)).rejects.toThrow(`${newer}: it needs @slipway/module 2, and`);
  });

  verifies('extension:module:one-copy', 'is rejected with the reason when it is not a package', async () => {
    await expect(load('on')).rejects.toThrow(`${folder}: there is no package.json.`);
    await writePackage(folder, { name: 'notes' });
    await expect(load('on', `${folder}/`)).rejects.toThrow('it has neither "exports" nor "main"');
  });
});
