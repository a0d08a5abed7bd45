import type { DynamicModule, ModuleMetadata, Type } from '@nestjs/common';
import type { Env, Role } from './env.js';

/** The roles that load a part of a module. */
type LoadedBy = 'always' | Role | `${Role} or ${Role}`;

/** A Nest module, and what each role of a process loads of it. */
type RoleModule = { module: Type } & Partial<Record<LoadedBy, ModuleMetadata>>;

/**
 * The `forRoles` of a module. Repeated calls with one `env` return the same object, because Nest identifies dynamic
 * modules by reference and would instantiate the providers of two objects twice.
 *
 * @param describe is called once for each `env`
 */
export function roleModule(describe: (env: Env) => RoleModule): (env: Env) => DynamicModule {
  const modules = new WeakMap<Env, DynamicModule>();
  return (env) => {
    const known = modules.get(env);
    if (known) return known;
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
