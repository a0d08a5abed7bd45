import { describe, expect, it } from '@jest/globals';
import { ModulesContainer } from '@nestjs/core';
import { createApp } from './app.setup.js';
import { loadEnv } from './config/env.js';

/** Nest provides these to each module. */
const OF_EACH_MODULE = ['ApplicationConfig', 'ModuleRef'];

/** The class of each instance that a process with these settings has. */
async function instances(
  settings: NodeJS.ProcessEnv,
): Promise<Record<'providers' | 'controllers', (string | undefined)[]>> {
  const env = loadEnv({ ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 7).toString('base64')}`, ...settings });
  const app = await createApp(env, { preview: true });
  const modules = [...app.get(ModulesContainer).values()];
  const providers = modules.flatMap((module) =>
    [...module.providers.values()]
      .filter(({ metatype, isNotMetatype }) => !isNotMetatype && metatype !== module.metatype)
      .map(({ metatype }) => metatype?.name)
      .filter((name) => !OF_EACH_MODULE.includes(name ?? '')),
  );
  const controllers = modules.flatMap((module) =>
    [...module.controllers.values()].map(({ metatype }) => metatype?.name),
  );
  return { providers, controllers };
}

describe('modules by role', () => {
  it.each(['api', 'worker', 'host', 'api,worker', 'api,host', 'worker,host', 'api,worker,host'])(
    'a process with the roles %s has one instance of each provider and controller',
    async (roles) => {
      const { providers, controllers } = await instances({ ROLES: roles });
      const all = [...providers, ...controllers];
      expect(all.filter((name, index) => all.indexOf(name) !== index)).toEqual([]);
      expect(all.includes('ReleasesService')).toBe(roles.includes('api'));
      expect(all.includes('ReleasePipeline')).toBe(roles.includes('worker'));
      expect(all.includes('ReleasePrograms')).toBe(roles.includes('host'));
    },
  );

  it('the language model of mocks is loaded only if one is configured, and changes no controller', async () => {
    const without = await instances({});
    const configured = await instances({ SIMULATOR_URL: 'http://127.0.0.1:1/v1', SIMULATOR_MODEL: 'any' });
    expect(without.providers).not.toContain('MockModel');
    expect(configured.providers).toContain('MockModel');
    expect(configured.controllers).toEqual(without.controllers);
  });
});
