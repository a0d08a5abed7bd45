import { Module } from '@nestjs/common';
import { HOUR_MS, roleModule, scheduledDeletion } from '../../extension.js';
import { ChangesController } from './changes.controller.js';
import { ChangesPageController } from './changes-page.controller.js';
import { ChangesRepository } from './changes.repository.js';
import { ChangesService } from './changes.service.js';
import { EndedAccessSlot } from './ended-access.slot.js';

@Module({})
export class ChangesModule {
  static readonly forRoles = roleModule(() => ({
    module: ChangesModule,
    always: { providers: [ChangesRepository, ChangesService] },
    api: { controllers: [ChangesController, ChangesPageController], providers: [EndedAccessSlot] },
    worker: {
      providers: [
        scheduledDeletion('deletion of old changes', HOUR_MS, ChangesService, (changes, now) => changes.deleteOld(now)),
      ],
    },
  }));
}
