import type { DynamicModule, Type } from '@nestjs/common';
import type { MigrationInterface } from 'typeorm';
import type { Env, Role } from '../../config/env.js';

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
}

/** Returns `definition`, with its type checked. */
export function defineModule(definition: ExternalModule): ExternalModule {
  return definition;
}

/** A module of `SLIPWAY_MODULES` cannot be loaded; the message names the folder and what to change. */
export class ExternalModuleError extends Error {}
