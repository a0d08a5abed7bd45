import { applyDecorators } from '@nestjs/common';
import { ApiBody, ApiOkResponse, ApiResponse } from '#api-docs';

const messages = [{ type: 'object' }, { type: 'array', items: { type: 'object' } }];

/**
 * Describes an MCP endpoint. `result` is the `tools/list` result of the example. The handler also needs `@HttpCode(200)`, which the compiler's
 * OpenAPI plugin reads.
 */
export function ApiMcp(result: object = { tools: [] }): MethodDecorator {
  return applyDecorators(
    ApiBody({
      schema: { oneOf: messages, example: { jsonrpc: '2.0', id: 1, method: 'tools/list' } },
      description: 'One JSON-RPC message. Clients of 2025-03-26 may send a batch.',
    }),
    ApiOkResponse({
      description: 'The JSON-RPC response; as an event stream when notifications precede it.',
      content: {
        'application/json': { schema: { oneOf: messages, example: { jsonrpc: '2.0', id: 1, result } } },
        'text/event-stream': { schema: { type: 'string' } },
      },
    }),
    ApiResponse({ status: 202, description: 'A notification was taken.' }),
  );
}

/** Error for `ApiErrors`: every MCP endpoint rejects foreign web pages. */
export const pageRefused = {
  status: 403,
  text: 'The request comes from a web page of another site.',
  message: 'The Origin header names a web site that is not this service',
};
