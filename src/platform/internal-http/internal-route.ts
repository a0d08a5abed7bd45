import { applyDecorators, Controller, HttpCode, Post } from '@nestjs/common';
import { ApiExcludeController } from '#api-docs';
import { Public } from '../http/public.decorator.js';

/** Declares a controller for other processes of this service, which the API document omits. */
export const InternalController = (path: string) => applyDecorators(Controller(path), ApiExcludeController());

/** Declares a route without a key: `InternalServer.accept` checks the signature. */
export const InternalRoute = () => applyDecorators(Post(), HttpCode(200), Public());
