import { Module } from '@nestjs/common';
import { roleModule } from '../../extension.js';
import { ServicePageController } from './service-page.controller.js';
import { ServicePageRepository } from './service-page.repository.js';
import { ServiceSections } from './service-sections.js';

@Module({})
export class ServicePageModule {
  static readonly forRoles = roleModule(() => ({
    module: ServicePageModule,
    api: { controllers: [ServicePageController], providers: [ServicePageRepository, ServiceSections] },
  }));
}
