import { Module } from '@nestjs/common';
import { SourceCompiler } from './source-compiler.js';

/** One compiler for a process, for the roles `api` and `host`. */
@Module({ providers: [SourceCompiler], exports: [SourceCompiler] })
export class SourceCompilerModule {}
