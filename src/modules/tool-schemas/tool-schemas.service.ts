import { Injectable } from '@nestjs/common';
import { toStorableText } from '../../platform/database/storable.js';
import type { ServerRef } from '../servers/server.types.js';
import { NotFoundError } from '../../platform/errors/domain-error.js';
import type { ToolOutputSchemaDto } from './tool-schema.dto.js';
import { toToolOutputSchemaDto } from './tool-schema.mapper.js';
import { ToolShapesRepository } from './tool-shape.repository.js';

@Injectable()
export class ToolSchemasService {
  constructor(private readonly toolShapesRepository: ToolShapesRepository) {}

  /** Infers a schema from recent results (Spec 4.8). @throws NotFoundError without samples */
  async infer(server: ServerRef, toolName: string): Promise<ToolOutputSchemaDto> {
    const observed = await this.toolShapesRepository.find(server.id, toStorableText(toolName));
    if (!observed) throw new NotFoundError('No output samples found');
    return toToolOutputSchemaDto(server, toolName, observed);
  }
}
