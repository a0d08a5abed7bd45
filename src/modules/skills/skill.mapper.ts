import type { PublishedSkillDto, SkillDto, SkillSummaryDto } from './skill.dto.js';
import type { Skill } from './skill.entity.js';

/** Members that Slipway does not measure: zero and false, since the contract requires them. */
const unknown = { qualityScore: 0, verified: false, externalStars: 0, externalForks: 0, uniqueUsers: 0 };

/** @param skill with its namespace */
export function toSkillSummaryDto(skill: Skill): SkillSummaryDto {
  return {
    id: skill.id,
    namespace: skill.namespace.name,
    slug: skill.slug,
    displayName: skill.name,
    description: skill.description,
    prompt: null,
    ...unknown,
    listed: true,
    createdAt: skill.createdAt.toISOString(),
    totalActivations: skill.totalActivations,
    categories: skill.categories,
    servers: skill.servers,
    gitUrl: skill.gitUrl,
  };
}

/** @param skill with its namespace and prompt */
export function toSkillDto(skill: Skill): SkillDto {
  return { ...toSkillSummaryDto(skill), prompt: skill.prompt, owner: skill.namespace.accountId };
}

export function toPublishedSkillDto(namespace: string, skill: Skill): PublishedSkillDto {
  return {
    id: skill.id,
    namespace,
    slug: skill.slug,
    displayName: skill.name,
    description: skill.description,
    gitUrl: skill.gitUrl,
    externalStars: unknown.externalStars,
    listed: true,
    createdAt: skill.createdAt.toISOString(),
    updatedAt: skill.updatedAt.toISOString(),
  };
}
