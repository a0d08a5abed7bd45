import { applyDecorators } from '@nestjs/common';
import { ApiBody, ApiOkResponse, ApiResponse } from '@nestjs/swagger';

/**
 * What the POST of every MCP address takes and answers; `result` is that of the `tools/list` it shows. Beside it
 * stands `@HttpCode(200)`, which the compiler's plugin for OpenAPI must see.
 */
export function ApiMcp(result: object = { tools: [] }): MethodDecorator {
  return applyDecorators(
    ApiBody({
      schema: { type: 'object', example: { jsonrpc: '2.0', id: 1, method: 'tools/list' } },
      description: 'One JSON-RPC message.',
    }),
    ApiOkResponse({
      description: 'The JSON-RPC response; as an event stream when notifications precede it.',
      content: {
        'application/json': { schema: { type: 'object', example: { jsonrpc: '2.0', id: 1, result } } },
        'text/event-stream': { schema: { type: 'string' } },
      },
    }),
    ApiResponse({ status: 202, description: 'A notification was taken.' }),
  );
}

/** For `ApiErrors`: every MCP address refuses web pages of others. */
export const pageRefused = {
  status: 403,
  text: 'A web page of another site asked.',
  message: 'The Origin header names a web site that is not this service',
};
