import { Global, Module } from '@nestjs/common';
import { InternalClient } from './internal-client.js';
import { InternalServer } from './internal-server.js';
import { InternalSignatures } from './internal-signatures.js';

/** Requests between the processes of one service. */
@Global()
@Module({
  providers: [InternalSignatures, InternalClient, InternalServer],
  exports: [InternalSignatures, InternalClient, InternalServer],
})
export class InternalHttpModule {}
