import type { DynamicModule, ModuleMetadata, Type } from '@nestjs/common';
import type { Env, Role } from './env.js';

/** The roles that load a part of a module. */
type LoadedBy = 'always' | Role | `${Role} or ${Role}`;

/** A part that a process imports only with its role. */
type LazyPart = () => Promise<ModuleMetadata>;

/** A Nest module, and what each role of a process loads of it. */
type RoleModule<Part> = { module: Type } & Partial<Record<LoadedBy, Part>>;

/**
 * The `forRoles` of a module. Repeated calls with one `env` return the same object, because Nest identifies dynamic
 * modules by reference and would instantiate the providers of two objects twice.
 *
 * @param describe is called once for each `env`; its parts may be functions that import their code, for code that other
 * roles should not load
 */
export function roleModule(describe: (env: Env) => RoleModule<ModuleMetadata>): (env: Env) => DynamicModule;
export function roleModule(
  describe: (env: Env) => RoleModule<ModuleMetadata | LazyPart>,
): (env: Env) => Promise<DynamicModule>;
export function roleModule(
  describe: (env: Env) => RoleModule<ModuleMetadata | LazyPart>,
): (env: Env) => DynamicModule | Promise<DynamicModule> {
  const modules = new WeakMap<Env, DynamicModule | Promise<DynamicModule>>();
  return (env) => {
    const known = modules.get(env);
    if (known) return known;
    const { module, ...parts } = describe(env);
    const isLoaded = (key: string) =>
      key === 'always' || key.split(' or ').some((role) => env.roles.includes(role as Role));
    const loaded = Object.entries(parts).flatMap(([key, part]) => (isLoaded(key) ? [part] : []));
    const merged = Object.values(parts).some((part) => typeof part === 'function')
      ? Promise.all(loaded.map((part) => (typeof part === 'function' ? part() : part))).then((all) => merge(module, all))
      : merge(module, loaded as ModuleMetadata[]);
    modules.set(env, merged);
    return merged;
  };
}

function merge(module: Type, parts: ModuleMetadata[]): DynamicModule {
  return {
    module,
    imports: parts.flatMap(({ imports = [] }) => imports),
    controllers: parts.flatMap(({ controllers = [] }) => controllers),
    providers: parts.flatMap(({ providers = [] }) => providers),
    exports: parts.flatMap(({ exports = [] }) => exports),
  };
}
