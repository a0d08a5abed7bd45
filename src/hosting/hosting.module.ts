import { Global, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { DataFolder } from './cluster/data-folder.js';
import { HopSender } from './cluster/hop-sender.js';
import { HostChoice } from './cluster/host-choice.js';
import { HostDirectory } from './cluster/host-directory.js';
import { HostLease } from './cluster/host-lease.js';
import { HostingHost } from './cluster/hosting-host.entity.js';
import { HostingPlacement } from './cluster/hosting-placement.entity.js';
import { PlacedHosting } from './cluster/placed-hosting.js';
import { Placements } from './cluster/placements.js';
import { Hosting } from './hosting.js';
import { Programs } from './programs.js';

/** The way to programs, in whichever process they run. */
@Global()
@Module({
  imports: [TypeOrmModule.forFeature([HostingHost, HostingPlacement])],
  providers: [
    Programs,
    DataFolder,
    HostLease,
    HostDirectory,
    Placements,
    HostChoice,
    HopSender,
    PlacedHosting,
    { provide: Hosting, useExisting: PlacedHosting },
  ],
  exports: [Programs, Hosting, PlacedHosting],
})
export class HostingModule {}
