import { Module } from '@nestjs/common';
import { roleModule } from '../../extension.js';
import { ToolTryController } from './tool-try.controller.js';

/** The page on which a person tries a tool: a form made of its schema. */
@Module({})
export class ToolFormsModule {
  static readonly forRoles = roleModule(() => ({ module: ToolFormsModule, api: { controllers: [ToolTryController] } }));
}
