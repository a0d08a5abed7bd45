import { applyDecorators } from '@nestjs/common';
import { ApiParam } from '#api-docs';
import { NamespaceNotFoundError } from '../namespaces/namespaces.errors.js';
import { InvalidInputError, ForbiddenError } from '../../platform/errors/domain-error.js';
import { NAMESPACE_NAME } from '../../platform/http/resource-names.js';

export const forbidden = { status: 403, message: "Forbidden: You don't own this namespace" };

/** The namespace in the path must belong to the caller. */
export const ownNamespace = {
  owner: 'namespace',
  missing: () => new NamespaceNotFoundError(),
  foreign: () => new ForbiddenError(forbidden.message),
};

export function ApiSkillName(): MethodDecorator & ClassDecorator {
  return applyDecorators(
    ApiParam({ name: 'namespace', description: 'The namespace.', example: 'acme' }),
    ApiParam({
      name: 'slug',
      description: 'The skill in its namespace: 1 to 64 lower-case letters, digits and hyphens.',
      example: 'code-review',
    }),
  );
}

export const skillNotFound = { status: 404, message: 'Skill not found' };

export const publishErrors = [
  400,
  forbidden,
  {
    status: 404,
    text: 'There is no such namespace, no such repository, or no SKILL.md in it.',
    message: 'Namespace not found',
  },
  { status: 413, text: 'The archive, or what it holds, is too large.', message: 'The archive is larger than 25 MB' },
  {
    status: 422,
    text: 'SKILL.md is invalid. The message says what to change.',
    code: 'invalid_skill_md',
    message: 'SKILL.md has no name: add one to its front matter',
  },
  {
    status: 503,
    text: 'Too many skills are being published. `Retry-After` says when to try again.',
    message: 'Too many requests of this kind are at work: try again in a few seconds',
  },
];

export const gitErrors = [
  ...publishErrors,
  {
    status: 409,
    text: 'Another skill was published from this folder of this repository.',
    code: 'git_url_conflict',
    message: 'Git URL already claimed by another skill',
  },
  {
    status: 502,
    text: 'The host of the repository is down, or returns something that is not a zip file.',
    message: 'The repository could not be fetched from github.com: ECONNREFUSED',
  },
];

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

/** Returns false for a reference that no skill can have. */
export function isSkillRef({ namespace, slug }: SkillRef): boolean {
  return NAMESPACE_NAME.test(namespace) && SKILL_SLUG.test(slug);
}
