import { Module } from '@nestjs/common';
import { roleModule } from '../../extension.js';
import { ToolTryController } from './tool-try.controller.js';

@Module({})
export class ToolFormsModule {
  static readonly forRoles = roleModule(() => ({ module: ToolFormsModule, api: { controllers: [ToolTryController] } }));
}
