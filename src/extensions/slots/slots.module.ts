import { Global, Module } from '@nestjs/common';
import { PageParts, roleModule } from '../../extension.js';
import { PageSlotsService } from './page-slots.service.js';

@Global()
@Module({})
export class SlotsModule {
  static readonly forRoles = roleModule(() => ({
    module: SlotsModule,
    api: { providers: [{ provide: PageParts, useClass: PageSlotsService }], exports: [PageParts] },
  }));
}
