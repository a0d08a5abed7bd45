import { applyDecorators } from '@nestjs/common';
import { ApiHeader, ApiResponse } from '@nestjs/swagger';

/** Documents a route whose answer has an `ETag` and is 304 without a body to who has that one. RFC 9110 13.1.2. */
export function ApiEtag(): MethodDecorator {
  return applyDecorators(
    ApiHeader({ name: 'If-None-Match', required: false, description: 'The `ETag` of the copy you have.' }),
    ApiResponse({ status: 304, description: 'Your copy is the current one.' }),
  );
}
