import { describe, expect, it } from '@jest/globals';
import type { ClassProvider, DynamicModule } from '@nestjs/common';
import { createApp } from '../../../src/app.setup.js';
import { AppModule } from '../../../src/app.module.js';
import { Env } from '../../../src/config/env.js';
import { Tuning } from '../../../src/config/tuning.js';
import { programOwners } from '../../../src/hosting/hosting.js';
import { GrantSource, TokenSource } from '../../../src/modules/auth/access.types.js';
import { transports } from '../../../src/modules/connections/core/connection-transports.js';
import { NamespaceDeletion } from '../../../src/modules/namespaces/namespaces.service.js';
import { credentialOwners } from '../../../src/modules/oauth/credentials.types.js';
import { pageOwners } from '../../../src/modules/oauth/setup/setup.types.js';
import { ServerDeletion } from '../../../src/modules/servers/servers.service.js';
import { serverHolders } from '../../../src/modules/servers/server.types.js';
import { testApp } from '../../support/app.js';
import { longIt } from '../../support/jest/globals.mjs';

const app = testApp();

const tokens = [
  ...[GrantSource, TokenSource, NamespaceDeletion, ServerDeletion],
  ...[programOwners, transports, credentialOwners, pageOwners, serverHolders].flatMap((kinds) =>
    Object.values<symbol>(kinds),
  ),
].map((token) => ({ token, name: typeof token === 'symbol' ? String(token) : token.name }));

/** Modules are described once for each `Env`, so a change of this one is in the application. */
function without(token: unknown): Env {
  const env = Object.assign(Object.create(Env.prototype) as Env, app.env);
  for (const { providers } of AppModule.forRoot(env, new Tuning(), []).imports?.flatMap(importsOf) ?? []) {
    const at = providers?.findIndex((provider) => (provider as ClassProvider).provide === token) ?? -1;
    if (at >= 0) providers?.splice(at, 1);
  }
  return env;
}

function importsOf(module: unknown): DynamicModule[] {
  const dynamic = module as DynamicModule;
  return [dynamic, ...(dynamic.imports ?? []).flatMap(importsOf)];
}

describe('a process without a part that a module needs from another', () => {
  for (const { token, name } of tokens) {
    const isQuick = token === GrantSource || token === transports.mock;
    (isQuick ? it : longIt)(`does not start: ${name}`, async () => {
      const broken = await createApp(without(token));
      await expect(broken.init()).rejects.toThrow(`could not find ${name} element`);
      await broken.close();
    });
  }
});
