import { ApiProperty } from '#api-docs';
import { ApiAdditionalProperties } from '../../../platform/http/api-docs.decorators.js';
import { ObjectSchemaDto, ServerIconDto } from '../core/connection.dto.js';
import { connectionStates } from '../core/connection-status.js';

@ApiAdditionalProperties(true)
export class ToolAnnotationsDto {
  title?: string;
  readOnlyHint?: boolean;
  destructiveHint?: boolean;
  idempotentHint?: boolean;
  openWorldHint?: boolean;
}

export const toolExample = {
  name: 'echo',
  description: 'Echoes back the input string',
  inputSchema: { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] },
};

/** A tool. Fields not listed here are forwarded unchanged (Spec 2.4). */
@ApiAdditionalProperties(true)
export class ToolDto {
  /** @example 'echo' */
  name: string;
  inputSchema: ObjectSchemaDto;
  title?: string;
  icons?: ServerIconDto[];
  /** @example 'Gives the message back.' */
  description?: string;
  outputSchema?: ObjectSchemaDto;
  annotations?: ToolAnnotationsDto;
  execution?: Record<string, unknown>;
  _meta?: Record<string, unknown>;
}

export class ToolListDto {
  tools: ToolDto[];
}

@ApiAdditionalProperties(true)
export class ContentDto {
  /** @example 'text' */
  type: string;
  /** @example 'Hello' */
  text?: string;
}

@ApiAdditionalProperties(true)
export class CallToolResultDto {
  content: ContentDto[];
  structuredContent?: Record<string, unknown>;
  /** True if the tool reports a failure. */
  isError?: boolean;
  _meta?: Record<string, unknown>;
}

export class NamespaceToolsStatusDto {
  /** @example 'connected' */
  @ApiProperty({ enum: connectionStates })
  state: string;
}

export class NamespaceToolsDto {
  /** @example 'my-first' */
  connectionId: string;
  name: string;
  status: NamespaceToolsStatusDto;
  tools: ToolDto[];
  /** The reason why there are no tools. */
  error?: string;
}
