import { type DynamicModule, Global, Module } from '@nestjs/common';
import type { Env, ExternalModule } from '../../extension.js';
import { readModuleSettings } from './module-settings.js';

@Global()
@Module({})
export class SettingsModule {
  /** @throws StartError for an invalid setting */
  static forModules(env: Env, modules: ExternalModule[]): DynamicModule {
    const providers = readModuleSettings(env, modules).map(({ provider }) => provider);
    return { module: SettingsModule, providers, exports: providers.map(({ provide }) => provide) };
  }
}
