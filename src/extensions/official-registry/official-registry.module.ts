import { Module } from '@nestjs/common';
import { defineModule } from '../../extension.js';
import { REGISTRY_BASE, registryBase } from './registry-base.js';
import { RegistryController } from './registry.controller.js';
import { RegistryService } from './registry.service.js';
import { RegistrySlots } from './registry.slots.js';

@Module({ controllers: [RegistryController], providers: [RegistryService, RegistrySlots] })
export class OfficialRegistryModule {}

export const officialRegistry = defineModule({
  name: 'official-registry',
  module: (env) => ({
    module: OfficialRegistryModule,
    providers: [{ provide: REGISTRY_BASE, useValue: registryBase(env) }],
  }),
});
