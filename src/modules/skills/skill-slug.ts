import { InvalidInputError } from '../../platform/errors/domain-error.js';
import { NAMESPACE_NAME } from '../../platform/http/resource-names.js';

/** Which skill is meant. */
export interface SkillRef {
  namespace: string;
  slug: string;
}

export const SKILL_SLUG = /^[a-z0-9-]{1,64}$/;

/** @throws InvalidInputError when no skill may have this slug */
export function requireSlug(slug: string): string {
  if (SKILL_SLUG.test(slug)) return slug;
  throw new InvalidInputError('slug must be 1 to 64 lower-case letters, digits and hyphens');
}

/** False for what cannot be a skill's name, and need not be looked for. */
export function isSkillRef({ namespace, slug }: SkillRef): boolean {
  return NAMESPACE_NAME.test(namespace) && SKILL_SLUG.test(slug);
}
