import { Module } from '@nestjs/common';
import { SourceCompiler } from './source-compiler.js';

/** One compiler for a whole process, whatever roles it has. */
@Module({ providers: [SourceCompiler], exports: [SourceCompiler] })
export class SourceCompilerModule {}
