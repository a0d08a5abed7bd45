import { Module } from '@nestjs/common';
import { roleModule } from '../../extension.js';
import { ToolTryController } from './tool-try.controller.js';

/** The page on which a person tries a tool, with a form generated from its schema. */
@Module({})
export class ToolFormsModule {
  static readonly forRoles = roleModule(() => ({ module: ToolFormsModule, api: { controllers: [ToolTryController] } }));
}
