import { Global, Module } from '@nestjs/common';
import { SignedUrls } from './signed-urls.js';

/** What routes of several modules need of HTTP. */
@Global()
@Module({ providers: [SignedUrls], exports: [SignedUrls] })
export class HttpModule {}
