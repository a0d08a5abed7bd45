import { Global, Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { ProcessRegistry } from './process-registry.js';
import { ServiceProcess } from './process.entity.js';
import { ProcessesRepository } from './processes.repository.js';

/** The processes of this service, and the lease of this one. */
@Global()
@Module({
  imports: [TypeOrmModule.forFeature([ServiceProcess])],
  providers: [ProcessesRepository, ProcessRegistry],
  exports: [ProcessesRepository, ProcessRegistry],
})
export class ProcessesModule {}
