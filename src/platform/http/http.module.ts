import { Global, Module } from '@nestjs/common';
import { SignedLinks } from './signed-links.js';

/** What routes of several modules need of HTTP. */
@Global()
@Module({ providers: [SignedLinks], exports: [SignedLinks] })
export class HttpModule {}
