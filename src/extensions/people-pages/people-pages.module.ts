import { Module } from '@nestjs/common';
import { roleModule } from '../../extension.js';
import { PeoplePageController } from './people-page.controller.js';

/** The page on which operators invite people and create organizations. */
@Module({})
export class PeoplePagesModule {
  static readonly forRoles = roleModule(() => ({
    module: PeoplePagesModule,
    api: { controllers: [PeoplePageController] },
  }));
}
