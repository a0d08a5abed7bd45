import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect } from '@jest/globals';
import { verifies } from '../../../test/support/verifies.js';
import { loadExternalModules } from './load-external-modules.js';

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
  verifies('extension:module:one-copy', 'may not bring its own copy of a shared package or of a peer', async () => {
    await writePackage(folder, { name: 'notes', peerDependencies: { '@nestjs/swagger': '12.x' } });
    const names = ['@nestjs/common', 'typeorm', 'slipway', '@nestjs/swagger'];
    for (const [at, name] of names.entries()) {
      const copy = path.join(folder, 'node_modules', name);
      await writePackage(copy, { name });
      const loading = loadExternalModules([`${folder}${'/'.repeat(at)}`]);
      await expect(loading).rejects.toThrow(`it would load its own copy of ${name}, from ${copy}`);
      await rm(copy, { recursive: true });
    }
    // A link to our copy is no other copy.
    await symlink(path.resolve('node_modules/typeorm'), path.join(folder, 'node_modules/typeorm'));
    await expect(loadExternalModules([`${folder}/.`])).rejects.toThrow('it has neither "exports" nor "main"');
  });

  verifies('extension:module:one-copy', 'is rejected with the reason when it is not a package', async () => {
    await expect(loadExternalModules([folder])).rejects.toThrow(`${folder}: there is no package.json.`);
    await writePackage(folder, { name: 'notes' });
    await expect(loadExternalModules([`${folder}/`])).rejects.toThrow('it has neither "exports" nor "main"');
  });
});
