import { Module } from '@nestjs/common';
import { roleModule } from '../../extension.js';
import { NewOrganizationController } from './new-organization.controller.js';
import { OrganizationController } from './organization.controller.js';
import { PeoplePageController } from './people-page.controller.js';

@Module({})
export class PeoplePagesModule {
  static readonly forRoles = roleModule(() => ({
    module: PeoplePagesModule,
    api: { controllers: [NewOrganizationController, OrganizationController, PeoplePageController] },
  }));
}
