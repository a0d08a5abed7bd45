import { ApiExtension, ApiHeader, ApiOkResponse, ApiResponse, ApiSchema, type ApiSchemaOptions } from '#api-docs';
import { applyDecorators } from '@nestjs/common';

/** OpenAPI extension that holds a route's errors until `openapi-document.ts` turns them into responses. */
export const API_ERRORS = 'x-errors';

/**
 * A status a route fails with; what it means there and the body's code (on MCP endpoints `rpcCode`) and text, if the
 * usual ones do not fit.
 */
export type ApiError = number | { status: number; text?: string; code?: string; rpcCode?: number; message?: string };

/**
 * Documents the statuses a route fails with; `openapi.ts` gives each the body of its path's family, and adds 401 and
 * 403 to every route that needs a key.
 */
export function ApiErrors(...errors: ApiError[]): MethodDecorator {
  return ApiExtension(API_ERRORS, errors);
}

export function ApiAdditionalProperties(additionalProperties: boolean): ClassDecorator {
  // Swagger copies every option to the schema, and declares two of them.
  return ApiSchema({ additionalProperties } as ApiSchemaOptions);
}

/** Documents the ETag: a client that has this version gets 304 and no body (RFC 9110 13.1.2). */
export function ApiEtag(): MethodDecorator {
  return applyDecorators(
    ApiHeader({ name: 'If-None-Match', required: false, description: 'The `ETag` of the copy you have.' }),
    ApiResponse({ status: 304, description: 'Your copy is the current one.' }),
  );
}

export function ApiEventStream(example: string): MethodDecorator {
  return applyDecorators(
    ApiHeader({ name: 'Last-Event-ID', required: false, description: 'The id of the last event you have.' }),
    ApiOkResponse({
      description: 'Every `data` is one JSON value.',
      content: { 'text/event-stream': { schema: { type: 'string', example } } },
    }),
  );
}
