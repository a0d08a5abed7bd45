import { Global, Module } from '@nestjs/common';
import { PageParts, roleModule } from '../../extension.js';
import { PageSlotsService } from './page-slots.service.js';

/** Shows the parts of pages that modules declare with `@PageSlot`. */
@Global()
@Module({})
export class SlotsModule {
  static readonly forRoles = roleModule(() => ({
    module: SlotsModule,
    api: { providers: [{ provide: PageParts, useClass: PageSlotsService }], exports: [PageParts] },
  }));
}
