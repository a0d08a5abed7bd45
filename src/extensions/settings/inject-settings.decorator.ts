import { Inject } from '@nestjs/common';
import type { ZodObject } from 'zod';

/**
 * Injects the settings of a module: the values of the object that is the `settings` of its `defineModule`.
 *
 * @example
 * export const starsSettings = z.object({ STARS_MAX: z.coerce.number().default(5) });
 *
 * class StarsService {
 *   constructor(@InjectSettings(starsSettings) private readonly settings: z.infer<typeof starsSettings>) {}
 * }
 * @stability preview
 */
export function InjectSettings(settings: ZodObject): ParameterDecorator & PropertyDecorator {
  return Inject(tokenOf(settings));
}

/** Returns the injection token of a settings object. Each setting belongs to one module, so the names identify the object. */
export function tokenOf(settings: ZodObject): string {
  return `settings ${Object.keys(settings.shape).join(', ')}`;
}
