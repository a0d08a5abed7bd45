import { Global, Module } from '@nestjs/common';
import { FrontMetrics } from './front.metrics.js';
import { HttpFront } from './http-front.js';
import { InternalParkedController } from './pending-input/internal-parked.controller.js';
import { ParkedCalls } from './pending-input/parked-calls.js';

/** The MCP endpoints of this process, whatever they lead to. */
@Global()
@Module({
  controllers: [InternalParkedController],
  providers: [HttpFront, FrontMetrics, ParkedCalls],
  exports: [HttpFront],
})
export class FrontModule {}
