import { Global, Module } from '@nestjs/common';
import { InternalSignatures } from '../internal-http/internal-signatures.js';
import { SignedLinks } from './signed-links.js';

/** What routes of several modules need of HTTP. */
@Global()
@Module({ providers: [InternalSignatures, SignedLinks], exports: [InternalSignatures, SignedLinks] })
export class HttpModule {}
