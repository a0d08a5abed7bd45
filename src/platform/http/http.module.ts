import { Global, Module } from '@nestjs/common';
import { SignedUrls } from './signed-urls.js';

/** Providers for routes of several modules. */
@Global()
@Module({ providers: [SignedUrls], exports: [SignedUrls] })
export class HttpModule {}
