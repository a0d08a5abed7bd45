import { Module } from '@nestjs/common';
import { InternalHostingController } from './cluster/internal-hosting.controller.js';

/** Running programs in this process, for all of them. */
@Module({ controllers: [InternalHostingController] })
export class HostingHostModule {}
