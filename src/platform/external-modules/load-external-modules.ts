import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { register } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { PeerResolution } from './peer-resolution.hooks.js';
import type { DynamicModule, Type } from '@nestjs/common';
import type { MigrationInterface } from 'typeorm';
import type { ZodObject } from 'zod';
import { StartError, type Env, type Role } from '../../config/env.js';

/** Packages that must be there once: decorators and tables of another copy are unknown to ours. */
const SHARED_PACKAGES = ['slipway', '@nestjs/common', 'typeorm'];

const NAME = /^[a-z][a-z0-9-]{1,31}$/;

/** The default export of a package that `SLIPWAY_MODULES` names. */
export interface ExternalModule {
  /** 2 to 32 lower-case letters, digits and hyphens, a letter first; unique among the modules. Prefix of its migrations. */
  name: string;
  /** The Nest module to load. Called once at start. */
  module(env: Env): Type | DynamicModule;
  /** The roles of a process that load it. Default: `api`. */
  roles?: Role[];
  /** Run after those of Slipway, by the timestamps in their class names, and recorded as `name:ClassName`. */
  migrations?: (new () => MigrationInterface)[];
  /** Variables of the environment, each with the name of the module in front: `STARS_MAX`. Injected by `@InjectSettings`. @stability preview */
  settings?: ZodObject;
  /** Label of the link to `/ui/m/{name}` in the head of all pages. @stability preview */
  link?: string;
}

type Entry = string | { import?: string; default?: string };

/** The parts of a package.json that decide what is loaded. */
interface Manifest {
  main?: string;
  exports?: Entry | { '.': Entry };
  peerDependencies?: Record<string, string>;
}

let loaded: { folders: string; modules: Promise<ExternalModule[]> } | null = null;

/**
 * Loads the packages in these folders, in this order; a second call returns the same modules.
 *
 * @throws StartError if one is no package, brings its own copy of a shared package, or exports no module
 */
export function loadExternalModules(folders: string[]): Promise<ExternalModule[]> {
  const key = folders.join(',');
  if (loaded?.folders !== key) loaded = { folders: key, modules: load(folders) };
  return loaded.modules;
}

async function load(folders: string[]): Promise<ExternalModule[]> {
  if (folders.length === 0) return [];
  const packages = folders.map(readPackage);
  const data: PeerResolution = {
    folders: packages.map(({ folder }) => `${pathToFileURL(folder).href}/`),
    ours: import.meta.url,
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
    if (modules.some(({ name }) => name === module.name)) {
      throw new StartError(`${folder}: another module is named "${module.name}" already.`);
    }
    modules.push(module);
  }
  return modules;
}

function readPackage(location: string): { folder: string; entry: string } {
  const file = path.join(location, 'package.json');
  if (!existsSync(file)) throw new StartError(`${location}: there is no package.json.`);
  const folder = realpathSync(location);
  const manifest = JSON.parse(readFileSync(file, 'utf8')) as Manifest;
  for (const name of new Set([...SHARED_PACKAGES, ...Object.keys(manifest.peerDependencies ?? {})])) {
    const [peerCopy, ownCopy] = [findPackage(folder, name), findPackage(import.meta.dirname, name)];
    if (peerCopy === null || peerCopy === ownCopy) continue;
    throw new StartError(
      `${folder}: it would load its own copy of ${name}, from ${peerCopy}. ` +
        'Declare it in peerDependencies and install the module with `npm install --omit=dev --omit=peer`.',
    );
  }
  const { exports, main } = manifest;
  const exported = typeof exports === 'object' && '.' in exports ? exports['.'] : exports;
  const entry = typeof exported === 'object' ? (exported.import ?? exported.default) : (exported ?? main);
  if (entry === undefined) throw new StartError(`${file}: it has neither "exports" nor "main".`);
  return { folder, entry: path.join(folder, entry) };
}

/** The folder of a package as Node finds it from `folder`, without symbolic links; null if there is none. */
function findPackage(folder: string, name: string): string | null {
  const file = path.join(folder, 'package.json');
  if (existsSync(file) && (JSON.parse(readFileSync(file, 'utf8')) as { name?: string }).name === name) {
    return realpathSync(folder);
  }
  const installed = path.join(folder, 'node_modules', name);
  if (existsSync(path.join(installed, 'package.json'))) return realpathSync(installed);
  const parent = path.dirname(folder);
  return parent === folder ? null : findPackage(parent, name);
}

/** Returns `definition`, with its type checked. */
export function defineModule(definition: ExternalModule): ExternalModule {
  return definition;
}
