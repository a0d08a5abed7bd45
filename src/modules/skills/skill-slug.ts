import { InvalidInputError } from '../../platform/errors/domain-error.js';
import { NAMESPACE_NAME } from '../../platform/http/resource-names.js';

/** The namespace and slug of a skill. */
export interface SkillRef {
  namespace: string;
  slug: string;
}

export const SKILL_SLUG = /^[a-z0-9-]{1,64}$/;

/** @throws InvalidInputError for a malformed slug */
export function requireSlug(slug: string): string {
  if (SKILL_SLUG.test(slug)) return slug;
  throw new InvalidInputError('slug must be 1 to 64 lower-case letters, digits and hyphens');
}

/** False for a reference that no skill can have. */
export function isSkillRef({ namespace, slug }: SkillRef): boolean {
  return NAMESPACE_NAME.test(namespace) && SKILL_SLUG.test(slug);
}
