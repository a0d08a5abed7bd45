import { DomainError, NotFoundError } from '../../platform/errors/domain-error.js';

export class SkillNotFoundError extends NotFoundError {
  constructor() {
    super('Skill not found');
  }
}

/** Another skill was published from the same folder of the same repository. */
export class GitUrlConflictError extends DomainError {
  readonly kind = 'conflict';
  readonly code = 'git_url_conflict';

  constructor() {
    super('Git URL already claimed by another skill');
  }
}

/** The skill was uploaded: there is nothing to fetch it from. */
export class NoGitUrlError extends DomainError {
  readonly kind = 'unprocessable';
  readonly code = 'no_git_url';

  constructor() {
    super('The skill was uploaded and has no Git URL: upload it again instead');
  }
}

/** SKILL.md is missing, or several are possible. */
export class SkillMdNotFoundError extends DomainError {
  readonly kind = 'not_found';
  readonly code = 'skill_md_not_found';
}

/** SKILL.md is invalid; the message says what to change. */
export class InvalidSkillMdError extends DomainError {
  readonly kind = 'unprocessable';
  readonly code = 'invalid_skill_md';

  constructor(problem: string) {
    super(`SKILL.md ${problem}`);
  }
}

/** The repository does not exist, or is not public. */
export class RepositoryNotFoundError extends DomainError {
  readonly kind = 'not_found';
  readonly code = 'repository_not_found';

  constructor(host: string, status: number) {
    super(`${host} answered ${status} for the repository: check the URL, and that the repository is public`);
  }
}

/** The host of the repository is down or slow, or its response is not a zip file. */
export class RepositoryUnavailableError extends DomainError {
  readonly kind = 'upstream';
  readonly code = 'upstream_error';
}
