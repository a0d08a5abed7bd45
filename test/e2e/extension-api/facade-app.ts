import { mkdtempSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll } from '@jest/globals';
import { type Caller, DomainError } from '../../../src/extension.js';
import { AccessService } from '../../../src/modules/auth/access.service.js';
import { testApp, type TestAccount, type TestApp } from '../../support/app.js';

/** An app with a package outside the tree. It loads the module next to this file, which has the copy of Slipway that the tests load. */
export function facadeApp(): TestApp {
  const folder = mkdtempSync(path.join(tmpdir(), 'slipway-facades-'));
  const module = pathToFileURL(path.join(import.meta.dirname, 'facades.module.ts')).href;
  writeFileSync(path.join(folder, 'package.json'), '{"name":"facades","type":"module","main":"main.js"}');
  writeFileSync(path.join(folder, 'main.js'), `export { default } from '${module}';`);
  afterAll(() => rm(folder, { recursive: true, force: true }));
  return testApp({ SLIPWAY_MODULES: folder });
}

/** The caller of a request with the key of an account. */
export async function callerOf(app: TestApp, { key }: TestAccount): Promise<Caller> {
  const request = { headers: { authorization: `Bearer ${key}` }, socket: {} } as IncomingMessage;
  return app.get(AccessService).authenticate(request);
}

/** The error of a call: its kind and its message. */
export async function errorOf(call: Promise<unknown>): Promise<{ kind: string; message: string }> {
  const error: unknown = await call.then(
    () => new Error('no error'),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof DomainError)) throw error;
  return { kind: error.kind, message: error.message };
}
