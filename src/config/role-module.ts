/**
 * Modules by role. A process loads of each module only the parts of its roles (`ROLES`):
 * `{ module, always: …, api: …, 'api or worker': … }`.
 *
 * Calls with one `Env` return the same object, because Nest identifies dynamic modules by reference and would otherwise
 * instantiate their providers twice. Only processes with the role of a `lazyPart` import its code, which saves memory:
 * it is empty until `loadLazyParts` has run, before Nest reads any module.
 *
 * A provider in the part of another role does not exist in the process: Nest then fails at start and names its
 * dependant.
 */
import type { DynamicModule, ModuleMetadata, Type } from '@nestjs/common';
import type { Env, Role } from './env.js';

type LoadedBy = 'always' | Role | `${Role} or ${Role}`;

type RoleModule = { module: Type } & Partial<Record<LoadedBy, ModuleMetadata>>;

interface LazyPart {
  role: Role;
  load: () => Promise<ModuleMetadata>;
  metadata: ModuleMetadata;
}

const lazyParts: LazyPart[] = [];

/** @returns the part, empty until {@link loadLazyParts} */
export function lazyPart(role: Role, load: LazyPart['load']): ModuleMetadata {
  const metadata: ModuleMetadata = {};
  lazyParts.push({ role, load, metadata });
  return metadata;
}

/**
 * Imports the lazy parts of these roles. Call it before modules are described, so that their order is always the same.
 */
export async function loadLazyParts(roles: readonly Role[]): Promise<void> {
  const needed = lazyParts.filter(({ role }) => roles.includes(role));
  await Promise.all(needed.map(async ({ load, metadata }) => Object.assign(metadata, await load())));
}

/** @param describe is called once for each `env` */
export function roleModule(describe: (env: Env) => RoleModule): (env: Env) => DynamicModule {
  const modules = new WeakMap<Env, DynamicModule>();
  return (env) => {
    const cachedModule = modules.get(env);
    if (cachedModule) return cachedModule;
    const { module, ...parts } = describe(env);
    const isLoaded = (key: string) =>
      key === 'always' || key.split(' or ').some((role) => env.roles.includes(role as Role));
    const loaded = Object.entries(parts).flatMap(([key, part]) => (isLoaded(key) ? [part] : []));
    const merged: DynamicModule = {
      module,
      imports: loaded.flatMap(({ imports = [] }) => imports),
      controllers: loaded.flatMap(({ controllers = [] }) => controllers),
      providers: loaded.flatMap(({ providers = [] }) => providers),
      exports: loaded.flatMap(({ exports = [] }) => exports),
    };
    modules.set(env, merged);
    return merged;
  };
}
