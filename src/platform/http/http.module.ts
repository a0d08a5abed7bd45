import { Global, Module } from '@nestjs/common';
import { InternalSignatures } from '../internal-http/internal-signatures.js';
import { SignedUrls } from './signed-urls.js';

/** Providers for routes of several modules. */
@Global()
@Module({ providers: [InternalSignatures, SignedUrls], exports: [InternalSignatures, SignedUrls] })
export class HttpModule {}
