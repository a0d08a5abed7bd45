/**
 * `#api-docs` in a process that renders no API documents: @nestjs/swagger takes 9 MB, and 0.2 s of each start. With
 * `--conditions=api-docs`, `imports` of package.json resolves `#api-docs` to @nestjs/swagger itself.
 */
import { SetMetadata } from '@nestjs/common';

export { IntersectionType, PartialType, PickType } from '@nestjs/mapped-types';

const silent = () => () => undefined;
export {
  silent as ApiAcceptedResponse,
  silent as ApiBearerAuth,
  silent as ApiBody,
  silent as ApiConsumes,
  silent as ApiCreatedResponse,
  silent as ApiExtension,
  silent as ApiExtraModels,
  silent as ApiHeader,
  silent as ApiOkResponse,
  silent as ApiOperation,
  silent as ApiParam,
  silent as ApiProperty,
  silent as ApiPropertyOptional,
  silent as ApiResponse,
  silent as ApiSchema,
  silent as ApiSecurity,
  silent as ApiTags,
  silent as getSchemaPath,
};

// KnownQueryGuard reads the metadata of these.
const API_PARAMETERS = 'swagger/apiParameters';
export const ApiExcludeController = () => SetMetadata('swagger/apiExcludeController', true);
export const ApiExcludeEndpoint = () => SetMetadata('swagger/apiExcludeEndpoint', true);
export const ApiQuery =
  (parameter: object): MethodDecorator =>
  (_target, _name, { value }) => {
    const parameters = (Reflect.getMetadata(API_PARAMETERS, value as object) ?? []) as object[];
    Reflect.defineMetadata(API_PARAMETERS, [...parameters, { ...parameter, in: 'query' }], value as object);
  };
