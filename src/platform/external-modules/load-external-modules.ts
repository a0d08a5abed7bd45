import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { register } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { satisfies } from 'semver';
import type { PeerResolution } from './peer-resolution.hooks.js';
import type { DynamicModule, Type } from '@nestjs/common';
import type { MigrationInterface } from 'typeorm';
import type { ZodObject } from 'zod';
import { StartError, type Env, type Role } from '../../config/env.js';

/** Version of the module API, whose major version is the `apiVersion` of modules. */
export const MODULE_API = '1.0.0';

const API_PACKAGE = '@slipway/module';

/** Packages that must be loaded once: Slipway does not see the decorators and tables of another copy. */
const SHARED_PACKAGES = ['@nestjs/common', '@nestjs/core', '@nestjs/swagger', '@nestjs/typeorm', 'typeorm'];

const NAME = /^[a-z][a-z0-9-]{1,31}$/;

/** The default export of a package that `SLIPWAY_MODULES` names. */
export interface ExternalModule {
  /** 2 to 32 lower-case letters, digits and hyphens, a letter first; unique among the modules. Prefix of its migrations. */
  name: string;
  /** The major version of `@slipway/module` that it is written for. Default: not compared. */
  apiVersion?: number;
  /** Returns the Nest module to load. Called once at startup. */
  module(env: Env): Type | DynamicModule;
  /** The roles of a process that load it. Default: `api`. */
  roles?: Role[];
  /** Migrations, which run after those of Slipway, by the timestamps in their class names, and are recorded as `name:ClassName`. */
  migrations?: (new () => MigrationInterface)[];
  /** Variables of the environment, each with the name of the module in front: `STARS_MAX`. Injected by `@InjectSettings`. @stability preview */
  settings?: ZodObject;
  /** Checks for `slipway doctor` what the module needs, and returns what it found. Throws for what prevents its work. @stability preview */
  doctor?(this: void, env: Env, settings: unknown): Promise<string>;
  /** Label of the link to `/ui/m/{name}` in the head of all pages. @stability preview */
  link?: string;
}

type Entry = string | { import?: string; default?: string };

interface Manifest {
  main?: string;
  exports?: Entry | { '.': Entry };
  peerDependencies?: Record<string, string>;
}

type ModuleSettings = Pick<Env, 'modules' | 'modulesCheck'>;

let loaded: { folders: string; modules: Promise<ExternalModule[]> } | null = null;

/**
 * Loads the packages of `SLIPWAY_MODULES` in its order; a second call returns the same modules.
 *
 * @throws StartError if one is not a package, is written for another version of the API, or exports no module
 */
export function loadExternalModules(settings: ModuleSettings): Promise<ExternalModule[]> {
  const key = (settings.modules ?? []).join(',');
  if (loaded?.folders !== key) loaded = { folders: key, modules: load(settings) };
  return loaded.modules;
}

async function load({ modules: folders, modulesCheck }: ModuleSettings): Promise<ExternalModule[]> {
  if (!folders?.length) return [];
  const isChecked = modulesCheck === 'on';
  const packages = folders.map((folder) => readPackage(folder, isChecked));
  const data: PeerResolution = {
    modules: packages.map(({ folder, peers }) => ({ folder: `${pathToFileURL(folder).href}/`, peers })),
    ours: import.meta.url,
    entryPoint: new URL('../../extension.js', import.meta.url).href,
  };
  register('./peer-resolution.hooks.js', { parentURL: import.meta.url, data });
  const modules: ExternalModule[] = [];
  for (const { folder, entry } of packages) {
    let exported: unknown;
    try {
      exported = ((await import(pathToFileURL(entry).href)) as { default?: unknown }).default;
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      if (code === 'ERR_MODULE_NOT_FOUND') throw new StartError(`${folder}: ${message}`);
      throw error;
    }
    const module = exported as ExternalModule | undefined;
    if (typeof module?.name !== 'string' || !NAME.test(module.name) || typeof module.module !== 'function') {
      throw new StartError(`${entry}: its default export must be what defineModule({ name, module, … }) returns.`);
    }
    const { apiVersion } = module;
    if (isChecked && apiVersion !== undefined && !satisfies(MODULE_API, String(apiVersion))) {
      throw incompatible(folder, String(apiVersion));
    }
    if (modules.some(({ name }) => name === module.name)) {
      throw new StartError(`${folder}: another module is named "${module.name}" already.`);
    }
    modules.push(module);
  }
  return modules;
}

function readPackage(location: string, isChecked: boolean): { folder: string; entry: string; peers: string[] } {
  const file = path.join(location, 'package.json');
  if (!existsSync(file)) throw new StartError(`${location}: there is no package.json.`);
  const folder = realpathSync(location);
  const { exports, main, peerDependencies = {} } = JSON.parse(readFileSync(file, 'utf8')) as Manifest;
  const range = peerDependencies[API_PACKAGE] ?? '*';
  if (isChecked && !satisfies(MODULE_API, range)) throw incompatible(folder, range);
  const exported = typeof exports === 'object' && '.' in exports ? exports['.'] : exports;
  const entry = typeof exported === 'object' ? (exported.import ?? exported.default) : (exported ?? main);
  if (entry === undefined) throw new StartError(`${file}: it has neither "exports" nor "main".`);
  return { folder, entry: path.join(folder, entry), peers: [...SHARED_PACKAGES, ...Object.keys(peerDependencies)] };
}

function incompatible(folder: string, range: string): StartError {
  return new StartError(
    `${folder}: it needs ${API_PACKAGE} ${range}, and this Slipway has ${MODULE_API}: ` +
      'install a release of the module for this version, or set SLIPWAY_MODULES_CHECK=off to load it as it is.',
  );
}

/** Returns `definition`, with its type checked. */
export function defineModule(definition: ExternalModule): ExternalModule {
  return definition;
}
