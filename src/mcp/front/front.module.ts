import { Global, Module } from '@nestjs/common';
import { HttpFront } from './http-front.js';

/** The MCP endpoints of this process, whatever they lead to. */
@Global()
@Module({ providers: [HttpFront], exports: [HttpFront] })
export class FrontModule {}
