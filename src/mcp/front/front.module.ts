import { Global, Module } from '@nestjs/common';
import { FrontMetrics } from './front.metrics.js';
import { HttpFront } from './http-front.js';

/** The MCP endpoints of this process, whatever they lead to. */
@Global()
@Module({ providers: [HttpFront, FrontMetrics], exports: [HttpFront] })
export class FrontModule {}
