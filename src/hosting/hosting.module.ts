import { Global, Module } from '@nestjs/common';
import { Programs } from './programs.js';

/** Running code that was uploaded. */
@Global()
@Module({ providers: [Programs], exports: [Programs] })
export class HostingModule {}
